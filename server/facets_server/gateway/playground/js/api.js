/** Calls to the server in the Connect protocol's JSON, their errors, and the state of the connection. */

const KEY = "facets-key";
const TIMEOUT_MS = 60_000;
const PROBE_MS = 2_000;

const ADVICE = {
  lost: "The page tries again once it is back.",
  unauthenticated: "Enter a valid API key.",
  permission_denied: "Use a key with this permission; the server's operator sets permissions.",
  not_found: "Check the name, or reload the page if it was deleted.",
  resource_exhausted: "Wait a moment and try again.",
  deadline_exceeded: "Try again, or with a shorter text.",
  unavailable: "Wait a moment and try again.",
  unimplemented: "This server has no model for it.",
  internal: "Try again; the server's log has details.",
};

/** A failed call: Connect's code, or "lost" when the server was not reached, and a sentence of advice. */
export class CallError extends Error {
  constructor(code, message, advice = Object.hasOwn(ADVICE, code) ? ADVICE[code] : "") {
    super(message);
    this.code = code;
    this.advice = advice;
  }
}

/** A handler of errors that returns null for those with this code and throws others. */
export function ignored(code) {
  return (error) => {
    if (error.code !== code) throw error;
    return null;
  };
}

/** Calls a method of a storage of the browser; null if storage is disabled. */
export function storage(kind, method, ...values) {
  try {
    return window[kind][method](...values);
  } catch {
    return null;
  }
}

let key = storage("sessionStorage", "getItem", KEY) ?? ""; // without storage it is kept until the page is left

/** Sets the key for later calls; empty: none. */
export function setKey(value) {
  key = value.trim();
  storage("sessionStorage", "setItem", KEY, key);
}

/** Headers of a call, with the key if there is one. */
export function headers() {
  return { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
}

/** Calls "Service/Method" of facets.v1. Messages are proto3 JSON: replies lack fields that are zero or empty. */
export async function call(method, request, signal, timeoutMs = TIMEOUT_MS) {
  let reply, answer;
  try {
    const body = JSON.stringify(request);
    reply = await fetch(`/facets.v1.${method}`, { method: "POST", headers: { ...headers(), "Connect-Timeout-Ms": timeoutMs }, body, signal });
    answer = reply.ok ? await reply.json() : await reply.json().catch(() => ({})); // a proxy's error may not be JSON
  } catch (error) {
    if (signal?.aborted) throw error;
    throw lost(reply ? "The connection was interrupted during the answer." : "The server does not answer.");
  }
  connection.reached();
  if (reply.ok) return answer;
  throw failure(reply.status, answer);
}

/** The error of a reply. What is too large, for messages or for the disk, must not be retried, although its code is resource_exhausted. */
export function failure(status, { code, message }) {
  const known = status === 413 || status === 507 ? "invalid_argument" : (code ?? (status === 503 ? "unavailable" : "unknown"));
  return new CallError(known, sentence(message || `The server answered with status ${status}.`));
}

export function lost(message) {
  connection.lost();
  return new CallError("lost", message);
}

/** Adds a capital and a full stop, except to field paths. */
export function sentence(message) {
  const started = /^\w+[.[]\S/.test(message) ? message : message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(started) ? started : `${started}.`;
}

/** State of the connection: "waiting", "reached" or "lost". While lost, asks every few seconds whether the server is ready. */
class Connection extends EventTarget {
  state = "waiting";
  #timer = 0;

  reached() {
    this.#set("reached");
  }

  lost() {
    this.#set("lost");
    this.#timer = setInterval(() => this.probe(), PROBE_MS);
  }

  async probe() {
    const reply = await fetch("/readyz", { signal: AbortSignal.timeout(PROBE_MS) }).catch(() => null);
    if (reply?.ok) this.reached();
  }

  #set(state) {
    clearInterval(this.#timer);
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new CustomEvent("change", { detail: state }));
  }
}

export const connection = new Connection();
