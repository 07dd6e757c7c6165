/** Uploads the documents of a file in batches; waits while the server is unavailable, and resumes where it stopped. */

import { call, CallError, connection, ignored, storage } from "./api.js";
import { documentOf, isOneDocument, rowsOf } from "./file_rows.js";

const BATCH = 64;
const BATCH_CHARACTERS = 300_000;
const PAUSE_MS = 1_000;
const TIMEOUT_MS = 60_000;
const TRANSIENT = new Set(["lost", "unavailable", "resource_exhausted", "deadline_exceeded"]);
const MAX_REJECTED = 100; // rejected rows to show

/** Upload of one file into a collection. Calls `changed` when its state changes. */
export class Upload {
  changed = () => {};
  read = 0; // bytes
  rows = 0;
  stored = 0;
  numRejected = 0;
  rejected = []; // the first rejected rows, as {row, reason}
  waiting = false;
  #batch = [];
  #stop = new AbortController();

  constructor(file, { collection, isNew, columns }) {
    Object.assign(this, { file, collection, isNew, columns });
    this.key = `facets-load ${collection} ${file.name} ${file.size} ${file.lastModified} ${Object.values(columns).join(" ")}`;
    this.before = Number(storage("localStorage", "getItem", this.key) ?? 0); // rows that an earlier upload stored
  }

  stop() {
    this.#stop.abort();
  }

  get stopped() {
    return this.#stop.signal.aborted;
  }

  /** Stores all rows, or those before it is stopped; throws a CallError or FileError. */
  async run() {
    try {
      if (this.isNew) await this.#call("CollectionService/CreateCollection", { name: this.collection }).catch(ignored("already_exists"));
      for await (const row of rowsOf(this.file, (bytes) => (this.read = bytes))) {
        this.rows += 1;
        if (this.rows > this.before) await this.#add(row);
      }
      await this.#send();
      storage("localStorage", "removeItem", this.key);
    } catch (error) {
      if (!this.stopped) throw error;
    }
  }

  async #add(row) {
    const madeId = isOneDocument(this.file) ? this.file.name : `${this.file.name}#${this.rows}`;
    const document = typeof row === "string" ? row : documentOf(row, this.columns, madeId);
    if (typeof document === "string") return this.#reject(this.rows, document);
    const same = this.#batch.find(({ document: other }) => other.id === document.id);
    if (same) return this.#reject(this.rows, `has the id of row ${same.row}`);
    this.#batch.push({ row: this.rows, document });
    const characters = this.#batch.reduce((sum, { document: { text } }) => sum + text.length, 0);
    if (this.#batch.length >= BATCH || characters >= BATCH_CHARACTERS) await this.#send();
  }

  async #send() {
    if (this.#batch.length) await this.#store(this.#batch);
    this.#batch = [];
    storage("localStorage", "setItem", this.key, String(this.rows));
    this.changed();
  }

  /** Stores a batch. The server stores all or nothing, so a batch is split until an invalid document is alone. */
  async #store(batch) {
    try {
      await this.#call("DocumentService/Upsert", { collection: this.collection, documents: batch.map(({ document }) => document) });
      this.stored += batch.length;
    } catch (error) {
      if (error.code !== "invalid_argument") throw error;
      if (batch.length === 1) return this.#reject(batch[0].row, error.message);
      const middle = Math.ceil(batch.length / 2);
      await this.#store(batch.slice(0, middle));
      await this.#store(batch.slice(middle));
    }
  }

  /** Calls until the server answers. */
  async #call(method, request) {
    for (let timeoutMs = TIMEOUT_MS; ; ) {
      try {
        return await call(method, request, this.#stop.signal, timeoutMs);
      } catch (error) {
        if (!(error instanceof CallError) || !TRANSIENT.has(error.code)) throw error;
        if (error.code === "deadline_exceeded") timeoutMs *= 2; // a text of several megabytes takes minutes
        await this.#pause();
      }
    }
  }

  async #pause() {
    this.waiting = true;
    this.changed();
    do await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    while (connection.state === "lost" && !this.stopped);
    this.waiting = false;
    this.changed();
  }

  #reject(row, reason) {
    this.numRejected += 1;
    if (this.rejected.length < MAX_REJECTED) this.rejected.push({ row, reason });
  }
}
