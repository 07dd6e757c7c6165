/** Calls to the server in the Connect protocol's JSON, their errors, and the state of the connection. */

const KEY = "facets-key";
const TIMEOUT_MS = 60_000;
const PROBE_MS = 5_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 8_000;

const ADVICE = {
  unauthenticated: "Enter a valid API key under Key, at the top.",
  permission_denied: "Use a key with this permission; the server's operator sets permissions.",
  not_found: "Check the name, or reload the page if it was deleted.",
  resource_exhausted: "Wait a moment and try again.",
  deadline_exceeded: "Try again, or with a shorter text.",
  unavailable: "Wait a moment and try again.",
  failed_precondition: "",
  invalid_argument: "",
  unimplemented: "This server has no model for it.",
  internal: "Try again; the server's log has details.",
};

/** A failed call, with a sentence of advice. */
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
    return ""; // without storage the key is kept until the page is left
  }
}

/** Sets the key for later calls; empty: none. */
export function setKey(value) {
  key = value.trim();
  try {
    if (key) sessionStorage.setItem(KEY, key);
    else sessionStorage.removeItem(KEY);
  } catch {
    // As above.
  }
}

/** The key of later calls; empty: none. */
export function storedKey() {
  return key;
}

/**
 * One unary call.
 * @param {string} method "Service/Method" of the package facets.v1.
 * @param {Object} request The message as proto3 JSON.
 * @param {AbortSignal} [signal]
 * @param {number} [timeoutMs] Deadline in milliseconds.
 * @returns {Promise<Object>} The reply as proto3 JSON, without fields that are zero or empty.
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
    throw new CallError("lost", "The connection was interrupted during the answer.", "The page tries again.");
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
    throw new CallError("lost", "The server does not answer.", "The page tries again once it is back.");
  }
}

async function failure(reply) {
  let error = {};
  try {
    error = await reply.json();
  } catch {
    // The reply of a proxy, for instance, is not JSON.
  }
  // A request that is too large must not be retried, although its code is resource_exhausted.
  const code = reply.status === 413 ? "invalid_argument" : (error.code ?? (reply.status === 503 ? "unavailable" : "unknown"));
  const message = error.message || `The server answered with status ${reply.status}.`;
  return new CallError(code, sentence(message));
}

/** Adds a capital and a full stop, except to field paths. */
function sentence(message) {
  const started = /^\w+[.[]\S/.test(message) ? message : message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(started) ? started : `${started}.`;
}

/** State of the connection: "waiting", "reached" or "lost". While lost, probes the server with growing pauses. */
class Connection extends EventTarget {
  state = "waiting";
  #pause = FIRST_PAUSE_MS;
  #timer = 0;

  reached() {
    this.#pause = FIRST_PAUSE_MS;
    clearTimeout(this.#timer);
    this.#set("reached");
  }

  lost() {
    if (this.state === "lost") return;
    this.#set("lost");
    this.#probeLater();
  }

  /** Probes the server now. */
  async probe() {
    clearTimeout(this.#timer);
    try {
      await fetch("/facets.v1.ModelService/ListModels", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: '{"pageSize":1}',
        signal: AbortSignal.timeout(PROBE_MS),
      });
      this.reached(); // an error reply also shows that the server was reached
    } catch {
      this.#probeLater();
    }
  }

  #probeLater() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.probe(), this.#pause);
    this.#pause = Math.min(LONGEST_PAUSE_MS, this.#pause * 2);
  }

  #set(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new CustomEvent("change", { detail: state }));
  }
}

export const connection = new Connection();
addEventListener("online", () => connection.state === "lost" && connection.probe());
