/** Uploads the documents of a file in batches; waits while the server is unavailable, and resumes where it stopped. */

import { call, CallError, connection } from "./api.js";
import { documentOf, isOneDocument, rowsOf } from "./file_rows.js";

const BATCH = 64;
const BATCH_CHARACTERS = 300_000;
const PAUSE_MS = 1_000;
const TIMEOUT_MS = 60_000;
const TRANSIENT = new Set(["lost", "unavailable", "resource_exhausted", "deadline_exceeded"]);
const MAX_REJECTED = 100; // rejected rows to show

/** Upload of one file into a collection. Dispatches "change" when its state changes. */
export class Upload extends EventTarget {
  read = 0;
  /** Bytes of rows that an earlier upload stored. */
  skipped = 0;
  stored = 0;
  rows = 0;
  numRejected = 0;
  /** @type {{row: number, reason: string}[]} The first rejected rows. */
  rejected = [];
  waiting = false;
  ended = false;
  #batch = [];
  #characters = 0;
  #stop = new AbortController();

  /**
   * @param {File} file
   * @param {{collection: string, isNew: boolean, columns: {text: string, title: string, id: string}}} to
   */
  constructor(file, { collection, isNew, columns }) {
    super();
    Object.assign(this, { file, collection, isNew, columns });
    this.key = `facets-load ${collection} ${file.name} ${file.size} ${file.lastModified} ${Object.values(columns).join(" ")}`;
    /** Rows that an earlier upload stored. */
    this.before = Number(storage("getItem", this.key) ?? 0);
  }

  stop() {
    this.#stop.abort();
  }

  get stopped() {
    return this.#stop.signal.aborted;
  }

  /**
   * Stores all rows, or those before it is stopped.
   * @throws {CallError|FileError}
   */
  async run() {
    if (this.isNew) await this.#create();
    for await (const row of rowsOf(this.file, (bytes) => (this.read = bytes))) {
      if (this.stopped) return;
      this.rows += 1;
      if (this.rows <= this.before) {
        this.skipped = this.read;
        continue;
      }
      await this.#add(row);
    }
    await this.#send();
    if (!this.stopped) storage("removeItem", this.key);
    this.#changed();
  }

  async #create() {
    try {
      await this.#retry((timeoutMs) => call("CollectionService/CreateCollection", { name: this.collection }, this.#stop.signal, timeoutMs));
    } catch (error) {
      if (error.code !== "already_exists" && !this.stopped) throw error;
    }
  }

  async #add(row) {
    const madeId = isOneDocument(this.file) ? this.file.name : `${this.file.name}#${this.rows}`;
    const document = typeof row === "string" ? row : documentOf(row, this.columns, madeId);
    if (typeof document === "string") return this.#reject(this.rows, document);
    const same = this.#batch.find(({ document: other }) => other.id === document.id);
    if (same) return this.#reject(this.rows, `has the id of row ${same.row}`);
    this.#batch.push({ row: this.rows, document });
    this.#characters += document.text.length;
    if (this.#batch.length >= BATCH || this.#characters >= BATCH_CHARACTERS) await this.#send();
  }

  async #send() {
    const batch = this.#batch;
    [this.#batch, this.#characters] = [[], 0];
    if (batch.length) await this.#store(batch);
    if (this.stopped) return;
    storage("setItem", this.key, String(this.rows));
    this.#changed();
  }

  /** Stores a batch. The server stores all or nothing, so a batch is split until an invalid document is alone. */
  async #store(batch) {
    try {
      const documents = batch.map(({ document }) => document);
      await this.#retry((timeoutMs) => call("DocumentService/Upsert", { collection: this.collection, documents }, this.#stop.signal, timeoutMs));
      this.stored += batch.length;
    } catch (error) {
      if (this.stopped) return;
      if (error.code !== "invalid_argument") throw error;
      if (batch.length === 1) return this.#reject(batch[0].row, error.message);
      const middle = Math.ceil(batch.length / 2);
      await this.#store(batch.slice(0, middle));
      await this.#store(batch.slice(middle));
    }
  }

  async #retry(send) {
    for (let timeoutMs = TIMEOUT_MS; ; ) {
      try {
        return await send(timeoutMs);
      } catch (error) {
        if (!(error instanceof CallError) || !TRANSIENT.has(error.code) || this.stopped) throw error;
        if (error.code === "deadline_exceeded") timeoutMs *= 2; // a text of several megabytes takes minutes
        this.waiting = true;
        this.#changed();
        await this.#pause(error.code);
        this.waiting = false;
        this.#changed();
      }
    }
  }

  /** Waits until the server is back, or for a moment if it is busy. */
  #pause(code) {
    return new Promise((resolve) => {
      const end = () => {
        connection.removeEventListener("change", end);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(end, code === "lost" ? 10 * PAUSE_MS : PAUSE_MS);
      connection.addEventListener("change", end);
      this.#stop.signal.addEventListener("abort", end, { once: true });
    });
  }

  #reject(row, reason) {
    this.numRejected += 1;
    if (this.rejected.length < MAX_REJECTED) this.rejected.push({ row, reason });
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/** Calls a method of the browser's storage; null if storage is disabled. */
function storage(method, ...values) {
  try {
    return localStorage[method](...values);
  } catch {
    return null;
  }
}
