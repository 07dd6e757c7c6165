/** Sends files unread to the server, which reads and stores them; shows the progress and the result of each. */

import { call, CallError, connection, failure, headers, lost, sentence } from "./api.js";
import { chosenCollection } from "./catalog.js";
import { button, count, folded, h, plural } from "./dom.js";
import { problem } from "./panel.js";

const FIRST_COLLECTION = "documents"; // if there is none to choose
const PAUSE_MS = 2_000;
const TRANSIENT = new Set(["lost", "unavailable", "resource_exhausted"]);
const MAX_LISTED = 20; // rejections of a file
const MAX_ROWS = 50; // files without problems that stay listed
const KINDS = [["num_added", "added"], ["num_changed", "changed"], ["num_unchanged", "unchanged"], ["num_removed", "removed"]];

const rows = h("div", { class: "stack tight" });
const summary = h("div", { class: "row", role: "status" });
/** Cards of all uploads, which continue while other views are shown. It gets the event "stored" after each file. */
export const uploads = h("section", { class: "stack tight", "aria-label": "Uploads" }, summary, rows);
const queue = [];
let numSent = 0;
let current = null;

addEventListener("beforeunload", (event) => current && event.preventDefault());

/** Stores files, one after the other. Each has a `name`: its path in a dropped or chosen folder. */
export async function store(files, collection = chosenCollection() || FIRST_COLLECTION) {
  queue.push(...files.map(({ file, name }) => new Upload(file, name, collection)));
  if (current) return showSummary();
  numSent = 0;
  while ((current = queue.shift())) {
    numSent += 1;
    showSummary();
    await current.run();
    uploads.dispatchEvent(new Event("stored"));
  }
  return showSummary();
}

function showSummary() {
  const stop = () => {
    queue.length = 0;
    current?.stopping.abort();
  };
  const isLong = current && queue.length + numSent > 1;
  summary.replaceChildren(...(isLong ? [`File ${count(numSent)} of ${count(numSent + queue.length)}`, button("Stop all", stop)] : []));
  for (const row of [...rows.querySelectorAll(".upload:not(:has(.problem))")].slice(MAX_ROWS)) row.remove();
}

/** Files of a drop, also those in dropped folders. */
export async function filesOf({ items, files }) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean); // before the first await: items vanish
  return entries.length ? named((await Promise.all(entries.map(filesBelow))).flat()) : chosenFiles(files);
}

/** Files of an input element. */
export function chosenFiles(files) {
  return named([...files].map((file) => ({ file, name: file.webkitRelativePath || file.name })));
}

/** Leaves out hidden files; names those of a single folder by their path in it, as the command does. */
function named(files) {
  const visible = files.filter(({ name }) => !/(^|\/)\./.test(name));
  const folders = new Set(visible.map(({ name }) => (name.includes("/") ? name.split("/", 1)[0] : "")));
  const [folder] = folders.size === 1 ? folders : [""];
  return visible.map(({ file, name }) => ({ file, name: folder ? name.slice(folder.length + 1) : name }));
}

async function filesBelow(entry) {
  if (entry.isFile) return [{ file: await new Promise((...settle) => entry.file(...settle)), name: entry.fullPath.slice(1) }];
  const reader = entry.createReader();
  const found = [];
  for (let batch; (batch = await new Promise((...settle) => reader.readEntries(...settle))).length; ) found.push(...batch);
  return (await Promise.all(found.map(filesBelow))).flat();
}

class Upload {
  stopping = new AbortController();

  constructor(file, name, collection) {
    Object.assign(this, { file, name, collection });
  }

  async run() {
    const { signal } = this.stopping;
    const bar = h("progress", { "aria-label": this.name });
    const said = h("span", { class: "small", role: "status" }, "Sending");
    const running = h("div", { class: "row" }, bar, button("Stop", () => this.stopping.abort()));
    const head = h("div", { class: "row actions" }, h("strong", {}, this.name), running);
    const row = h("div", { class: "card upload", role: "group", "aria-label": this.name }, head, said);
    rows.prepend(row);
    const progress = ({ share, num_documents: number }) => {
      if (share < 1) bar.value = share;
      else bar.removeAttribute("value");
      said.textContent = share < 1 ? "Sending" : number ? `${plural(number, "document")} read` : "The server reads it";
    };
    try {
      // A file that the browser cannot read would look like a lost connection.
      await this.file.slice(0, 1).arrayBuffer().catch(() => Promise.reject(new CallError("unreadable", "The browser cannot read this file.", "")));
      this.#show(row, head, said, await this.#patiently(() => sent(this, signal, progress), said));
    } catch (error) {
      said.textContent = signal.aborted ? "Stopped. What was stored before stays; store the file again to continue." : "";
      // A file that was refused would be refused again.
      if (error.code !== "invalid_argument") head.append(button("Store again", () => (row.remove(), store([this], this.collection))));
      if (signal.aborted) return;
      error.message = this.#unnamed(error.message);
      row.append(problem(error));
    } finally {
      running.remove();
    }
  }

  /** A message without the name of the file, which the card has. */
  #unnamed(message) {
    return sentence(message.replace(`${this.name}: `, ""));
  }

  /** Repeats a call while the server is away or busy. */
  async #patiently(send, said) {
    for (;;) {
      try {
        return await send();
      } catch (error) {
        if (!TRANSIENT.has(error.code) || this.stopping.signal.aborted) throw error;
        said.textContent = "Waiting for the server; no data is lost";
        do await new Promise((go) => setTimeout(go, PAUSE_MS));
        while (connection.state === "lost" && !this.stopping.signal.aborted);
        this.stopping.signal.throwIfAborted();
      }
    }
  }

  /** Shows what was stored, what was not, and the undoing of a file that was new. */
  #show(row, head, said, { name, rejected = [], notes = [], ...counts }) {
    const told = KINDS.filter(([kind]) => counts[kind]).map(([kind, verb]) => `${count(counts[kind])} ${verb}`);
    const isStored = counts.num_added || counts.num_changed || counts.num_unchanged;
    const reasons = rejected.slice(0, MAX_LISTED).map(({ file, line, message }) => h("li", {}, [file !== name && file, line && `line ${line}`, message].filter(Boolean).join(": ")));
    const isOne = rejected.length === 1 && !isStored;
    said.textContent = told.length ? `Documents in ${this.collection}: ${told.join(", ")}` : "";
    row.append(
      isStored ? "" : problem(new CallError("", "Nothing was stored.", isOne ? sentence(rejected[0].message) : "")),
      reasons.length && !isOne ? folded(`${plural(rejected.length, "record")} could not be stored`, h("ul", {}, reasons)) : "",
      ...notes.map((note) => h("p", { class: "small" }, this.#unnamed(note))),
    );
    if (counts.num_added && told.length === 1) head.append(button("Undo", (event) => this.#undo(event.target, said, name)));
  }

  async #undo(button, said, name) {
    button.disabled = true;
    try {
      const { numDeleted } = await call("DocumentService/DeleteDocuments", { collection: this.collection, source: name });
      said.textContent = `Undone: ${plural(numDeleted ?? 0, "document")} removed from ${this.collection}`;
      button.remove();
      uploads.dispatchEvent(new Event("stored"));
    } catch (error) {
      said.after(problem(error));
      button.disabled = false;
    }
  }
}

/** Sends a file; resolves to the result in the last line of the reply. */
function sent({ file, name, collection }, signal, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest(); // fetch has no progress of sending
    request.upload.onprogress = ({ loaded, total }) => progress({ share: loaded / total });
    request.onprogress = () => progress(lastLine(request.responseText).progress ?? {});
    request.onload = () => {
      const last = lastLine(request.responseText);
      connection.reached();
      if (last.result) resolve(last.result);
      else if (request.status === 200 && !last.error) reject(lost("The connection was interrupted during the answer."));
      else reject(failure(request.status, last.error ?? last));
    };
    request.onerror = () => reject(lost("The server does not answer."));
    request.onabort = () => reject(signal.reason);
    request.open("POST", `/v1/collections/${encodeURIComponent(collection)}/files?${new URLSearchParams({ name })}`);
    for (const [header, value] of Object.entries({ ...headers(), "Content-Type": "application/octet-stream" })) request.setRequestHeader(header, value);
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

/** The last whole line of a reply; empty if it is not JSON, as an error of a proxy. */
function lastLine(text) {
  try {
    return JSON.parse(text.slice(0, text.lastIndexOf("\n") + 1 || undefined).trimEnd().split("\n").at(-1));
  } catch {
    return {};
  }
}
