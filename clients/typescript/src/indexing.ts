import { Code, ConnectError, type Client } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { PassThrough } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type { DocumentSchema, DocumentService, UpsertStreamAck } from "./generated/facets_proto/v1/documents_pb.js";
import { FacetsError } from "./errors.js";
import { pauseBefore, transient } from "./retry.js";

/** A document to store: `id`, `text`, and any JSON object as `payload`. */
export type NewDocument = MessageInitShape<typeof DocumentSchema>;
type Batch = { sequence: bigint; documents: NewDocument[] };
export type Documents = Iterable<NewDocument> | AsyncIterable<NewDocument>;

export interface IndexOptions {
  /** Documents per batch; each batch has one acknowledgement. Default 64. */
  batchSize?: number;
  /** Token from an earlier acknowledgement, to continue with the unacknowledged documents. */
  resumeToken?: string;
  /** Milliseconds to wait for each acknowledgement. Default 120,000. */
  timeoutMs?: number;
  /** Attempts without an acknowledgement before giving up. Default 5. */
  maxAttempts?: number;
  /** Cancels the stream. */
  signal?: AbortSignal;
}

/** Acknowledges a batch: it and all earlier batches are durable. */
export interface IndexAck {
  ack: UpsertStreamAck;
  /** Documents acknowledged so far, including rejected ones: where to continue after a crash of this program. */
  numDocuments: number;
  /** Value for `IndexOptions.resumeToken`. */
  resumeToken: string;
}

/**
 * Stores any number of documents in numbered batches. Unacknowledged ones are kept and sent again after a broken
 * connection; the server stores none of them twice.
 */
export async function* indexDocuments(
  client: Client<typeof DocumentService>, collection: string, documents: Documents, options: IndexOptions,
): AsyncGenerator<IndexAck, void, undefined> {
  const { batchSize = 64, timeoutMs = 120_000, maxAttempts = 5, signal } = options;
  const batches = batched(documents, batchSize);
  const unacked: Batch[] = [];
  let [exhausted, sequence, numDocuments, resumeToken] = [false, 0n, 0, options.resumeToken ?? ""];
  try {
    for (let attempt = 1; ; attempt += 1) {
      const stream = new AbortController();
      const requests = new PassThrough({ objectMode: true }); // a queue that waits for more
      let wait: number | undefined;
      try {
        requests.write({ message: { case: "open", value: { collection, resumeToken } } });
        const either = signal ? AbortSignal.any([stream.signal, signal]) : stream.signal;
        const replies = client.upsertStream(requests, { signal: either })[Symbol.asyncIterator]();
        const opened = (await within(timeoutMs, stream, replies.next())).value?.message;
        if (opened?.case !== "opened") throw new ConnectError("the server did not open the stream", Code.Unavailable);
        resumeToken = opened.value.resumeToken;
        if (sequence === 0n) sequence = opened.value.lastAckedSequence;
        for (const batch of unacked) requests.write({ message: { case: "batch", value: batch } });
        for (;;) {
          while (!exhausted && unacked.length < Math.max(1, opened.value.maxUnackedBatches)) {
            // An error of the documents is not one of the connection: it is never retried.
            const next = await batches.next().catch((error: unknown) => Promise.reject(FacetsError.from(error)));
            exhausted = next.done === true;
            if (next.done) break;
            unacked.push({ sequence: (sequence += 1n), documents: next.value });
            requests.write({ message: { case: "batch", value: unacked.at(-1) } });
          }
          if (unacked.length === 0) return;
          const ack = (await within(timeoutMs, stream, replies.next())).value?.message;
          if (ack?.case !== "ack") throw new ConnectError("the server ended the stream before its acks", Code.Unavailable);
          const batch = unacked.shift()!;
          if (batch.sequence !== ack.value.sequence) {
            throw new Error(`expected the acknowledgement of batch ${batch.sequence}, got that of ${ack.value.sequence}`);
          }
          numDocuments += batch.documents.length;
          attempt = 0;
          yield { ack: ack.value, numDocuments, resumeToken };
        }
      } catch (thrown) {
        const error = transient(thrown, signal);
        wait = error && attempt < maxAttempts ? pauseBefore(error, attempt + 1) : undefined;
        if (wait === undefined) throw FacetsError.from(error ?? thrown);
      } finally {
        requests.end();
        stream.abort();
      }
      await pause(wait, undefined, { signal });
    }
  } finally {
    await batches.return();
  }
}

async function* batched(documents: Documents, size: number): AsyncGenerator<NewDocument[], void, undefined> {
  let batch: NewDocument[] = [];
  for await (const document of documents) {
    if (batch.push(document) < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** The answer, or DEADLINE_EXCEEDED after the given milliseconds, which also aborts the stream. */
async function within<T>(timeoutMs: number, stream: AbortController, answer: Promise<T>): Promise<T> {
  const late = new ConnectError(`no answer within ${timeoutMs} ms`, Code.DeadlineExceeded);
  const timer = setTimeout(() => stream.abort(late), timeoutMs);
  try {
    return await answer;
  } catch (error) {
    throw stream.signal.reason === late ? late : error;
  } finally {
    clearTimeout(timer);
  }
}
