import { Code, ConnectError } from "@connectrpc/connect";
import type { Client } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { PassThrough } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type { DocumentSchema, DocumentService, UpsertStreamAck, UpsertStreamRequestSchema } from "./generated/facets_proto/v1/documents_pb.js";
import { FacetsError } from "./errors.js";
import { pauseBefore, transient } from "./retry.js";

/** A document to store: `id`, `text`, and any JSON object as `payload`. */
export type NewDocument = MessageInitShape<typeof DocumentSchema>;
type StreamRequest = MessageInitShape<typeof UpsertStreamRequestSchema>;
type Batch = { sequence: bigint; documents: NewDocument[] };
type Documents = Iterable<NewDocument> | AsyncIterable<NewDocument>;

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
export class IndexStream {
  private readonly unacked: Batch[] = [];
  private readonly source: AsyncIterator<NewDocument>;
  private exhausted = false;
  private sequence = 0n;
  private numDocuments = 0;
  private resumeToken: string;

  constructor(
    private readonly client: Client<typeof DocumentService>,
    private readonly collection: string,
    documents: Documents,
    private readonly options: IndexOptions,
  ) {
    this.resumeToken = options.resumeToken ?? "";
    this.source = iterate(documents);
  }

  async *acks(): AsyncGenerator<IndexAck, void, undefined> {
    const maxAttempts = this.options.maxAttempts ?? 5;
    try {
      for (let attempt = 1; ; attempt += 1) {
        try {
          for await (const ack of this.connection()) {
            attempt = 0;
            yield ack;
          }
          return;
        } catch (thrown) {
          const error = transient(thrown, this.options.signal);
          const wait = error && attempt < maxAttempts ? pauseBefore(error, attempt + 1) : undefined;
          if (wait === undefined) throw FacetsError.from(error ?? thrown);
          await pause(wait, undefined, { signal: this.options.signal });
        }
      }
    } finally {
      await this.source.return?.();
    }
  }

  /** One connection: first the unacknowledged batches, then the rest. */
  private async *connection(): AsyncGenerator<IndexAck, void, undefined> {
    const { timeoutMs = 120_000, signal } = this.options;
    const stream = new AbortController();
    const requests = new PassThrough({ objectMode: true }); // a queue that waits for more
    try {
      requests.write({ message: { case: "open", value: { collection: this.collection, resumeToken: this.resumeToken } } });
      const either = signal ? AbortSignal.any([stream.signal, signal]) : stream.signal;
      const replies = this.client.upsertStream(requests, { signal: either })[Symbol.asyncIterator]();
      const opened = (await within(timeoutMs, stream, replies.next())).value?.message;
      if (opened?.case !== "opened") throw new ConnectError("the server did not open the stream", Code.Unavailable);
      this.resumeToken = opened.value.resumeToken;
      if (this.sequence === 0n) this.sequence = opened.value.lastAckedSequence;
      const window = Math.max(1, opened.value.maxUnackedBatches);
      for (const batch of this.unacked) requests.write(batchRequest(batch));
      while (await this.fill(requests, window)) {
        const reply = (await within(timeoutMs, stream, replies.next())).value?.message;
        if (reply?.case !== "ack") throw new ConnectError("the server ended the stream before its acks", Code.Unavailable);
        yield this.acknowledged(reply.value);
      }
    } finally {
      requests.end();
      stream.abort();
    }
  }

  /** Sends until the window is full; false: everything was sent and acknowledged. */
  private async fill(requests: PassThrough, window: number): Promise<boolean> {
    while (!this.exhausted && this.unacked.length < window) {
      const documents = await this.take(this.options.batchSize ?? 64);
      if (documents.length === 0) break;
      this.sequence += 1n;
      const batch = { sequence: this.sequence, documents };
      this.unacked.push(batch);
      requests.write(batchRequest(batch));
    }
    return this.unacked.length > 0;
  }

  private async take(count: number): Promise<NewDocument[]> {
    const taken: NewDocument[] = [];
    while (taken.length < count && !this.exhausted) {
      const next = await this.source.next();
      if (next.done) this.exhausted = true;
      else taken.push(next.value);
    }
    return taken;
  }

  private acknowledged(ack: UpsertStreamAck): IndexAck {
    const batch = this.unacked.shift();
    if (batch?.sequence !== ack.sequence) {
      throw new Error(`expected the acknowledgement of batch ${batch?.sequence}, got that of ${ack.sequence}`);
    }
    this.numDocuments += batch.documents.length;
    return { ack, numDocuments: this.numDocuments, resumeToken: this.resumeToken };
  }
}

function batchRequest(batch: Batch): StreamRequest {
  return { message: { case: "batch", value: { sequence: batch.sequence, documents: batch.documents } } };
}

async function* iterate(documents: Documents): AsyncGenerator<NewDocument, void, undefined> {
  yield* documents;
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
