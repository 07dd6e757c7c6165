import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { setTimeout as pause } from "node:timers/promises";
import { retryAfterMs } from "./errors.js";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;

/**
 * The error, if it is transient; else undefined.
 *
 * A connection that breaks during a call is reported as CANCELED, as if the caller had cancelled. Unless the caller
 * did, it counts as UNAVAILABLE.
 */
export function transient(error: unknown, signal: AbortSignal | undefined): ConnectError | undefined {
  if (!(error instanceof ConnectError) || signal?.aborted) return undefined;
  if (error.code === Code.Unavailable || error.code === Code.ResourceExhausted) return error;
  const broken = error.code === Code.Canceled || error.code === Code.Aborted;
  return broken ? new ConnectError(error.rawMessage, Code.Unavailable, error.metadata, undefined, error) : undefined;
}

/**
 * Milliseconds to wait before attempt number `attempt` + 1; undefined: do not retry.
 *
 * A delay requested by the server takes precedence (`grpc-retry-pushback-ms`, `RetryInfo`). Without one, pauses grow
 * with random jitter, so that clients do not retry at the same moment.
 */
export function pauseBefore(error: ConnectError, attempt: number, random: () => number = Math.random): number | undefined {
  const requested = retryAfterMs(error);
  if (requested !== undefined) return requested < 0 ? undefined : requested;
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1));
  return longest * (0.5 + 0.5 * random());
}

/** Retries unary calls on UNAVAILABLE and RESOURCE_EXHAUSTED, never beyond the deadline of the call. */
export function retrying(maxAttempts: number): Interceptor {
  return (next) => async (request) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await next(request);
      } catch (thrown) {
        const error = transient(thrown, request.signal);
        if (request.stream || !error) throw thrown;
        const wait = attempt < maxAttempts ? pauseBefore(error, attempt) : undefined;
        if (wait === undefined) throw error;
        await pause(wait, undefined, { signal: request.signal }).catch(() => {
          throw request.signal.reason instanceof ConnectError ? request.signal.reason : error;
        });
      }
    }
  };
}
