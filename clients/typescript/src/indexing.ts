import { Code, ConnectError } from "@connectrpc/connect";
import type { Client } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { setTimeout as pause } from "node:timers/promises";
import type { DocumentSchema, DocumentService, UpsertStreamAck, UpsertStreamRequestSchema } from "./generated/facets_proto/v1/documents_pb.js";
import { FacetsError } from "./errors.js";
import { pauseBefore, transient } from "./retries.js";

/** A document to store: `id`, `text`, and any JSON object as `payload`. */
export type NewDocument = MessageInitShape<typeof DocumentSchema>;
type StreamRequest = MessageInitShape<typeof UpsertStreamRequestSchema>;

export interface IndexOptions {
  /** Documents of one batch; each batch has one acknowledgement. Default 64. */
  batchSize?: number;
  /** Of an earlier acknowledgement, to go on with the documents that were not acknowledged. */
  resumeToken?: string;
  /** Milliseconds to wait for each acknowledgement. Default 120,000. */
  timeoutMs?: number;
  /** Tries without a single acknowledgement before giving up. Default 5. */
  maxAttempts?: number;
  /** Ends the stream. */
  signal?: AbortSignal;
}

/** One batch is durable, and so are all before it. */
export interface IndexAck {
  ack: UpsertStreamAck;
  /** Documents acknowledged so far, rejected ones included: where to go on after a crash of this program. */
  numDocuments: number;
  /** Goes into `IndexOptions.resumeToken`. */
  resumeToken: string;
}

interface Batch {
  sequence: bigint;
  documents: NewDocument[];
}

type Documents = Iterable<NewDocument> | AsyncIterable<NewDocument>;

/**
 * Stores any number of documents over as many connections as it takes.
 *
 * Batches are numbered; those sent and not acknowledged are kept, and sent again after a broken connection. The server
 * stores none of them twice.
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
    const mostAttempts = this.options.maxAttempts ?? 5;
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
          const wait = error && attempt < mostAttempts ? pauseBefore(error, attempt + 1) : undefined;
          if (wait === undefined) throw FacetsError.from(error ?? thrown);
          await pause(wait, undefined, { signal: this.options.signal });
        }
      }
    } finally {
      await this.source.return?.();
    }
  }

  /** One connection: what is not acknowledged first, then the rest. */
  private async *connection(): AsyncGenerator<IndexAck, void, undefined> {
    const deadline = new Deadline(this.options.timeoutMs ?? 120_000, this.options.signal);
    const requests = new Outbox();
    try {
      requests.push({ message: { case: "open", value: { collection: this.collection, resumeToken: this.resumeToken } } });
      const replies = this.client.upsertStream(requests, { signal: deadline.signal })[Symbol.asyncIterator]();
      const opened = (await deadline.wait(replies.next())).value?.message;
      if (opened?.case !== "opened") throw new ConnectError("the server did not open the stream", Code.Unavailable);
      this.resumeToken = opened.value.resumeToken;
      if (this.sequence === 0n) this.sequence = opened.value.lastAckedSequence;
      const window = Math.max(1, opened.value.maxUnackedBatches);
      for (const batch of this.unacked) requests.push(batchRequest(batch));
      while (await this.fill(requests, window)) {
        const reply = (await deadline.wait(replies.next())).value?.message;
        if (reply?.case !== "ack") throw new ConnectError("the server ended the stream before its acks", Code.Unavailable);
        yield this.acknowledged(reply.value);
      }
    } finally {
      requests.end();
      deadline.stop();
    }
  }

  /** Sends until the window is full; false: everything is sent and acknowledged. */
  private async fill(requests: Outbox, window: number): Promise<boolean> {
    while (!this.exhausted && this.unacked.length < window) {
      const documents = await this.take(this.options.batchSize ?? 64);
      if (documents.length === 0) break;
      this.sequence += 1n;
      const batch = { sequence: this.sequence, documents };
      this.unacked.push(batch);
      requests.push(batchRequest(batch));
    }
    return this.unacked.length > 0;
  }

  private async take(count: number): Promise<NewDocument[]> {
    const taken: NewDocument[] = [];
    while (taken.length < count) {
      const next = await this.source.next();
      if (next.done) {
        this.exhausted = true;
        break;
      }
      taken.push(next.value);
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

/** Requests to send, in order, as an iterable that waits for more. */
class Outbox implements AsyncIterable<StreamRequest> {
  private readonly waiting: StreamRequest[] = [];
  private ended = false;
  private wake: () => void = () => {};

  push(request: StreamRequest): void {
    this.waiting.push(request);
    this.wake();
  }

  end(): void {
    this.ended = true;
    this.wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamRequest, void, undefined> {
    for (;;) {
      const request = this.waiting.shift();
      if (request) yield request;
      else if (this.ended) return;
      else await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }
}

/** A time limit for each answer of a stream. */
class Deadline {
  private readonly controller = new AbortController();
  private readonly forward = (): void => this.controller.abort(this.outer?.reason);

  constructor(
    private readonly timeoutMs: number,
    private readonly outer: AbortSignal | undefined,
  ) {
    if (outer?.aborted) this.forward();
    outer?.addEventListener("abort", this.forward, { once: true });
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  async wait<T>(answer: Promise<T>): Promise<T> {
    const late = new ConnectError(`no answer within ${this.timeoutMs} ms`, Code.DeadlineExceeded);
    const timer = setTimeout(() => this.controller.abort(late), this.timeoutMs);
    try {
      return await answer;
    } catch (error) {
      throw this.controller.signal.reason === late ? late : error;
    } finally {
      clearTimeout(timer);
    }
  }

  stop(): void {
    this.outer?.removeEventListener("abort", this.forward);
    this.controller.abort();
  }
}
