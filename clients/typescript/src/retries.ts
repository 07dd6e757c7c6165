import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { setTimeout as pause } from "node:timers/promises";
import { retryAfterMs } from "./errors.js";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;

/** How often and how long to try again. */
export interface RetryPolicy {
  /** Tries in all, the first one included. */
  maxAttempts: number;
}

/**
 * What a later try can mend, or undefined.
 *
 * A connection that breaks under a call reads as CANCELED, as if the caller had left: where he has not, it is UNAVAILABLE.
 */
export function transient(error: unknown, signal: AbortSignal | undefined): ConnectError | undefined {
  if (!(error instanceof ConnectError) || signal?.aborted) return undefined;
  if (error.code === Code.Unavailable || error.code === Code.ResourceExhausted) return error;
  const broken = error.code === Code.Canceled || error.code === Code.Aborted;
  return broken ? new ConnectError(error.rawMessage, Code.Unavailable, error.metadata, undefined, error) : undefined;
}

/**
 * Milliseconds to wait before try number `attempt` + 1; undefined: do not try again.
 *
 * The server's word counts (`grpc-retry-pushback-ms`, `RetryInfo`); without one the pauses grow, with a random part so
 * that callers do not come back all at once.
 */
export function pauseBefore(error: ConnectError, attempt: number, random: () => number = Math.random): number | undefined {
  const asked = retryAfterMs(error);
  if (asked !== undefined) return asked < 0 ? undefined : asked;
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1));
  return longest * (0.5 + 0.5 * random());
}

/** Tries unary calls again on UNAVAILABLE and RESOURCE_EXHAUSTED, never beyond the deadline of the call. */
export function retrying(policy: RetryPolicy): Interceptor {
  return (next) => async (request) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await next(request);
      } catch (thrown) {
        const error = transient(thrown, request.signal);
        if (request.stream || !error) throw thrown;
        const wait = attempt < policy.maxAttempts ? pauseBefore(error, attempt) : undefined;
        if (wait === undefined) throw error;
        try {
          await pause(wait, undefined, { signal: request.signal });
        } catch {
          throw request.signal.reason instanceof ConnectError ? request.signal.reason : error;
        }
      }
    }
  };
}
