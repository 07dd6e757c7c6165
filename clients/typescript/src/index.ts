export { Facets, partOf } from "./arrays.js";
export { connect, FacetsClient } from "./client.js";
export type { CallOptions, ConnectOptions, EmbedOptions, SearchOptions } from "./client.js";
export { FacetsError } from "./errors.js";
export type { FieldViolation } from "./errors.js";
export type { IndexAck, IndexOptions, NewDocument } from "./indexing.js";
