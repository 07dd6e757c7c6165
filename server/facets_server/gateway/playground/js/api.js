/** Calls to the server: JSON over HTTP as the Connect protocol has it, and what to tell when one fails. */

const KEY = "facets-key";
const TIMEOUT_MS = 60_000;
const PROBE_MS = 5_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 8_000;

const ADVICE = {
  unauthenticated: "Enter a key that this server knows under Key, at the top.",
  permission_denied: "Use a key that may do this; its rights are set on the server.",
  not_found: "Check the name, or reload the page if it was deleted meanwhile.",
  resource_exhausted: "Wait a moment and try again.",
  deadline_exceeded: "Try again, or with a shorter text.",
  unavailable: "Wait a moment and try again.",
  failed_precondition: "",
  invalid_argument: "",
  unimplemented: "This server was started without a model for it.",
  internal: "Try again; the server's log says more.",
};

/** A failed call: one sentence for people, and what they can do. */
export class CallError extends Error {
  /** @param {string} code Connect's code, "lost" when the server was not reached. */
  constructor(code, message, advice = ADVICE[code] ?? "") {
    super(message);
    this.code = code;
    this.advice = advice;
  }
}

let key = stored();

function stored() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return ""; // storage is switched off: the key lives as long as the page
  }
}

/** Takes a key for all later calls; empty: none. */
export function setKey(value) {
  key = value.trim();
  try {
    if (key) sessionStorage.setItem(KEY, key);
    else sessionStorage.removeItem(KEY);
  } catch {
    // As above.
  }
}

export function hasKey() {
  return key !== "";
}

/**
 * One unary call.
 * @param {string} method "Service/Method" of the package facets.v1.
 * @param {Object} request The message as proto3 JSON.
 * @param {AbortSignal} [signal]
 * @param {number} [timeoutMs] Milliseconds that the answer may take.
 * @returns {Promise<Object>} The reply as proto3 JSON: fields that are zero or empty are missing.
 * @throws {CallError}
 */
export async function call(method, request, signal, timeoutMs = TIMEOUT_MS) {
  const reply = await fetched(method, request, signal, timeoutMs);
  connection.reached();
  if (reply.ok) return await body(reply, signal);
  throw await failure(reply);
}

async function body(reply, signal) {
  try {
    return await reply.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    connection.lost();
    throw new CallError("lost", "The connection broke off in the middle of the answer.", "It is asked again by itself.");
  }
}

async function fetched(method, request, signal, timeoutMs) {
  const headers = {
    "Content-Type": "application/json",
    "Connect-Protocol-Version": "1",
    "Connect-Timeout-Ms": String(timeoutMs),
  };
  if (key) headers.Authorization = `Bearer ${key}`;
  try {
    return await fetch(`/facets.v1.${method}`, { method: "POST", headers, body: JSON.stringify(request), signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    connection.lost();
    throw new CallError("lost", "The server does not answer.", "It is asked again by itself once it is back.");
  }
}

async function failure(reply) {
  let told = {};
  try {
    told = await reply.json();
  } catch {
    // Not from the server itself, a proxy for instance: the status is all there is.
  }
  // Too large will be too large again, whatever the code says.
  const code = reply.status === 413 ? "invalid_argument" : (told.code ?? (reply.status === 503 ? "unavailable" : "unknown"));
  const message = told.message || `The server answered with status ${reply.status}.`;
  return new CallError(code, sentence(message));
}

/** With a capital and a full stop, as the messages of the server have none; paths of fields stay as they are. */
function sentence(message) {
  const begun = /^\w+[.[]\S/.test(message) ? message : message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/** Whether the server is there; asks again, with growing pauses, while it is not. Sends "lost", "reached", "waiting". */
class Connection extends EventTarget {
  state = "waiting";
  #pause = FIRST_PAUSE_MS;
  #timer = 0;

  reached() {
    this.#pause = FIRST_PAUSE_MS;
    clearTimeout(this.#timer);
    this.#become("reached");
  }

  lost() {
    if (this.state === "lost") return;
    this.#become("lost");
    this.#later();
  }

  /** Asks now. */
  async probe() {
    clearTimeout(this.#timer);
    try {
      await fetch("/facets.v1.ModelService/ListModels", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: '{"pageSize":1}',
        signal: AbortSignal.timeout(PROBE_MS),
      });
      this.reached(); // even a refusal is an answer
    } catch {
      this.#later();
    }
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.probe(), this.#pause);
    this.#pause = Math.min(LONGEST_PAUSE_MS, this.#pause * 2);
  }

  #become(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new CustomEvent("change", { detail: state }));
  }
}

export const connection = new Connection();
addEventListener("online", () => connection.state === "lost" && connection.probe());
