import type { DescService, MessageInitShape } from "@bufbuild/protobuf";
import { createClient, type Client, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { Facets, joinFacets, readFacets } from "./arrays.js";
import { FacetsError } from "./errors.js";
import { DataType } from "./generated/facets_proto/v1/common_pb.js";
import { CollectionService, DocumentService, FacetCombination, SearchMode, type SearchRequest } from "./generated/facets_proto/v1/documents_pb.js";
import type { FilterSchema } from "./generated/facets_proto/v1/filters_pb.js";
import { ModelService } from "./generated/facets_proto/v1/models_pb.js";
import { RecommendationService } from "./generated/facets_proto/v1/papers_pb.js";
import { RelationService } from "./generated/facets_proto/v1/relations_pb.js";
import type { SearchHit } from "./generated/facets_proto/v1/results_pb.js";
import { EmbeddingService, SimilarityService, SummarizationService } from "./generated/facets_proto/v1/texts_pb.js";
import { indexDocuments, type Documents, type IndexAck, type IndexOptions } from "./indexing.js";
import { retrying } from "./retry.js";

const DEFAULT_PORT = 50051;

export interface ConnectOptions {
  /** API key, for servers that require one. */
  apiKey?: string;
  /** True: TLS with Node's trusted roots; or certificates as PEM. Default: no TLS. */
  tls?: boolean | { ca?: string; cert?: string; key?: string };
  /** Milliseconds for one call, including retries. Default 30,000. */
  timeoutMs?: number;
  /** Attempts of one call, including the first. Default 5. */
  maxAttempts?: number;
}

export interface CallOptions {
  /** Milliseconds for this call instead of the client's. */
  timeoutMs?: number;
  /** Cancels the call. */
  signal?: AbortSignal;
}

export interface EmbedOptions extends CallOptions {
  /** Name; empty: the server's default. */
  model?: string;
  /** Scale every facet to unit length. */
  normalize?: boolean;
  /** Texts per request. Default 64. */
  batchSize?: number;
}

type SearchField = "topK" | "minConfidence" | "diversify" | "evidence" | "exact" | "minRevision";

/** Options with the names and defaults of `SearchRequest`; `mode`, `combine` and `where` in the terms of this client. */
export type SearchOptions = CallOptions & Partial<Pick<SearchRequest, SearchField>> & {
  /** Default `hybrid`: facets and words. */
  mode?: "hybrid" | "facets" | "lexical";
  /** A document must answer all facets of the query, or any; default: any for several questions, else all. */
  combine?: "sum" | "any";
  /** Only documents whose payload matches. */
  where?: MessageInitShape<typeof FilterSchema>;
};

const MODES = { hybrid: SearchMode.HYBRID, facets: SearchMode.FACETS, lexical: SearchMode.LEXICAL };
const COMBINATIONS = { sum: FacetCombination.SUM, any: FacetCombination.ANY };

/** A connection to a server, from `connect` to `close`; any number of calls may run at once. */
export class FacetsClient {
  /** Every generated rpc, with the client's deadline, retries and key: `client.texts.explain({ texts })`. */
  readonly texts: Client<typeof EmbeddingService>;
  readonly similarity: Client<typeof SimilarityService>;
  readonly summaries: Client<typeof SummarizationService>;
  readonly collections: Client<typeof CollectionService>;
  readonly documents: Client<typeof DocumentService>;
  readonly relations: Client<typeof RelationService>;
  readonly papers: Client<typeof RecommendationService>;
  readonly models: Client<typeof ModelService>;
  private readonly streams: Client<typeof DocumentService>;
  private readonly session: Http2SessionManager;

  constructor(target: string, options: ConnectOptions) {
    const tls = options.tls ?? false;
    const baseUrl = baseUrlOf(target, tls !== false);
    const nodeOptions = typeof tls === "object" ? tls : {};
    this.session = new Http2SessionManager(baseUrl, {}, nodeOptions);
    const settings = { baseUrl, nodeOptions, sessionManager: this.session };
    const interceptors = [retrying(options.maxAttempts ?? 5), withKey(options.apiKey)];
    const calls = createGrpcTransport({ ...settings, interceptors, defaultTimeoutMs: options.timeoutMs ?? 30_000 });
    this.texts = withErrors(createClient(EmbeddingService, calls));
    this.similarity = withErrors(createClient(SimilarityService, calls));
    this.summaries = withErrors(createClient(SummarizationService, calls));
    this.collections = withErrors(createClient(CollectionService, calls));
    this.documents = withErrors(createClient(DocumentService, calls));
    this.relations = withErrors(createClient(RelationService, calls));
    this.papers = withErrors(createClient(RecommendationService, calls));
    this.models = withErrors(createClient(ModelService, calls));
    // A stream has no deadline, and converts its errors itself.
    this.streams = createClient(DocumentService, createGrpcTransport({ ...settings, interceptors: [withKey(options.apiKey)] }));
  }

  /** Facets of any number of texts, `[texts, facets, dim]`, in input order. */
  async embed(texts: readonly string[], options: EmbedOptions = {}): Promise<Facets> {
    rejectString(texts, "texts");
    const { model = "", normalize = false, batchSize = 64, ...call } = options;
    const parts: Facets[] = [];
    for (let start = 0; start === 0 || start < texts.length; start += batchSize) {
      const part = texts.slice(start, start + batchSize);
      const reply = await this.texts.embed({ texts: part, model, normalize, dtype: DataType.FLOAT32 }, call);
      parts.push(readFacets(reply.facetEmbeddings));
    }
    return joinFacets(parts);
  }

  /** The best documents of a collection for each query, best first; `hit.answer?.text` is the answer. */
  async search(collection: string, queries: readonly string[], options: SearchOptions = {}): Promise<SearchHit[][]> {
    rejectString(queries, "queries");
    const { timeoutMs, signal, mode, combine, ...fields } = options;
    const texts = queries.map((text) => ({ query: { case: "text" as const, value: text } }));
    const enums = { mode: mode && MODES[mode], combine: combine && COMBINATIONS[combine] };
    const reply = await this.documents.search({ ...fields, ...enums, collection, queries: texts }, { timeoutMs, signal });
    return reply.results.map((result) => result.hits);
  }

  /**
   * Stores documents in bounded memory and in order; yields an acknowledgement for each batch once it is durable.
   *
   * After a broken connection the unacknowledged batches are sent again, and nothing is stored twice. Bad documents are
   * listed in `ack.rejectedDocuments`; the others are stored.
   */
  index(collection: string, documents: Documents, options: IndexOptions = {}): AsyncGenerator<IndexAck, void, undefined> {
    return indexDocuments(this.streams, collection, documents, options);
  }

  /** Closes the connection; running calls fail. */
  close(): void {
    this.session.abort();
  }
}

/**
 * A client of the server at `HOST` or `HOST:PORT` (default `localhost:50051`); the first call opens the connection.
 *
 * Every call has a deadline. UNAVAILABLE and RESOURCE_EXHAUSTED are retried within it, unless the server forbids it.
 * Every method throws `FacetsError`.
 */
export function connect(target = `localhost:${DEFAULT_PORT}`, options: ConnectOptions = {}): FacetsClient {
  return new FacetsClient(target, options);
}

/** A generated client whose unary calls throw `FacetsError`; streams throw the transport's error. */
function withErrors<Service extends DescService>(client: Client<Service>): Client<Service> {
  return new Proxy(client, {
    get(target, name, receiver) {
      const method: unknown = Reflect.get(target, name, receiver);
      if (typeof method !== "function") return method;
      return (...given: unknown[]): unknown => {
        const answer: unknown = method.apply(target, given);
        return answer instanceof Promise ? answer.catch((error) => Promise.reject(FacetsError.from(error))) : answer;
      };
    },
  });
}

function withKey(apiKey: string | undefined): Interceptor {
  return (next) => (request) => {
    if (apiKey) request.header.set("authorization", `Bearer ${apiKey}`);
    return next(request);
  };
}

function baseUrlOf(target: string, tls: boolean): string {
  const bare = target.startsWith("[") || target.split(":").length <= 2 ? target : `[${target}]`;
  const withPort = /^(\[[^\]]+\]|[^:[\]/]+)(:\d{1,5})?$/.exec(bare);
  if (!withPort) throw new TypeError(`target must be HOST or HOST:PORT, got ${JSON.stringify(target)}`);
  return `${tls ? "https" : "http"}://${withPort[1]}${withPort[2] ?? `:${DEFAULT_PORT}`}`;
}

function rejectString(texts: unknown, name: string): void {
  if (typeof texts === "string") throw new TypeError(`${name} must be an array of strings, got one string`);
}
