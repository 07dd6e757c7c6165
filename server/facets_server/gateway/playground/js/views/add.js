/** Uploads dropped or chosen files into a collection: assigns columns and shows progress. */

import { button, count, duration, field, folded, h, plural, select } from "../dom.js";
import { Upload } from "../upload.js";
import { problem } from "../panel.js";
import { ACCEPT, documentOf, FileError, guessed, isOneDocument, READABLE, rowsOf } from "../file_rows.js";
import { listCollections } from "../catalog.js";

const NUM_SAMPLED = 50; // rows that columns are guessed from
const NEW = "+ new collection";
/** Card -> upload. Uploads continue while another view is shown. */
const uploads = new Map();
addEventListener("beforeunload", (event) => [...uploads.values()].some((upload) => !upload.ended) && event.preventDefault());

/** Fills `root` with the view. */
export async function open(root) {
  return new AddView(root, await listCollections());
}

class AddView {
  constructor(root, collections) {
    this.collection = select("collection", [[NEW, "A new collection"], ...collections.map(({ name, numDocuments = 0 }) => [name, `${name} (${count(numDocuments)})`])]);
    this.name = h("input", { name: "name", autocomplete: "off", maxlength: 64, pattern: "[a-z0-9][a-z0-9_\\-]*" });
    this.nameField = field("Name", this.name, "Lower-case letters, digits, - and _; at most 64.");
    this.input = h("input", { type: "file", multiple: true, accept: ACCEPT });
    this.files = h("div", { class: "results" }, [...uploads.keys()]);
    this.zone = h(
      "div",
      { class: "card drop" },
      h("p", { class: "drop-word" }, "Drop files here"),
      field("or choose them", this.input, `${READABLE}. A file stays on this machine until you press Store.`),
    );
    root.replaceChildren(
      h("h1", {}, "Add files"),
      h("p", { class: "lede" }, "Stores files as documents, which can be searched at once. Uploads continue while you use other views."),
      h("div", { class: "card columns" }, field("Into", this.collection), this.nameField),
      this.zone,
      this.files,
    );
    this.#listen();
    this.#update();
  }

  /** Chooses the collection that the address names. */
  open({ collection }) {
    if (collection && [...this.collection.options].some((option) => option.value === collection)) this.collection.value = collection;
    this.#update();
  }

  close() {
    for (const [card, upload] of uploads) if (upload.ended) uploads.delete(card);
  }

  #listen() {
    this.collection.addEventListener("change", () => this.#update());
    this.input.addEventListener("change", () => {
      this.take(this.input.files);
      this.input.value = "";
    });
    for (const kind of ["dragenter", "dragover"]) this.zone.addEventListener(kind, () => this.zone.classList.add("over"));
    for (const kind of ["dragleave", "drop"]) this.zone.addEventListener(kind, () => this.zone.classList.remove("over"));
  }

  #update() {
    this.nameField.hidden = this.collection.value !== NEW;
    this.name.required = this.collection.value === NEW;
  }

  /** Takes files that were chosen, or dropped anywhere on the page. A collection named like the file is chosen. */
  async take(files) {
    for (const file of [...files]) {
      if (this.collection.value === NEW && !this.name.value) {
        this.name.value = collectionName(file);
        if ([...this.collection.options].some((option) => option.value === this.name.value)) this.open({ collection: this.name.value });
      }
      const card = h("section", { class: "card stack tight", "aria-label": file.name }, h("h2", {}, file.name));
      this.files.prepend(card);
      try {
        await this.#showColumns(card, file);
      } catch (error) {
        card.append(errorMessage(error));
      }
    }
  }

  /** Shows the columns, a preview, and a button that stores. */
  async #showColumns(card, file) {
    const rows = [];
    for await (const row of rowsOf(file)) {
      if (typeof row !== "string") rows.push(row);
      if (rows.length === NUM_SAMPLED) break;
    }
    if (!rows.length) throw new FileError(`${file.name} has no valid row.`);
    const guess = guessed(rows);
    const columns = guess.names.map((name) => [name, name]);
    const text = select("text", columns, guess.text);
    const title = select("title", [["", "none"], ...columns], guess.title);
    const id = select("id", [["", "file name and row"], ...columns], guess.id);
    const preview = h("p", { class: "passage preview" });
    const chosenColumns = () => ({ text: text.value, title: title.value, id: id.value });
    const show = () => {
      const first = documentOf({ ...rows[0] }, chosenColumns(), file.name);
      preview.textContent = typeof first === "string" ? `The first row ${first}.` : [first.payload.title, first.text.slice(0, 280)].filter(Boolean).join(": ");
    };
    for (const control of [text, title, id]) control.addEventListener("change", show);
    show();
    const store = h("button", { type: "submit", class: "primary" }, "Store");
    const form = h("form", { class: "stack tight" }, !isOneDocument(file) && h("div", { class: "columns" }, field("Text", text), field("Title", title), field("Id", id)), h("h3", {}, "First document"), preview, h("div", {}, store));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#store(card, form, { file, columns: chosenColumns() });
    });
    card.append(form);
    store.focus();
  }

  async #store(card, form, { file, columns }) {
    for (const old of card.querySelectorAll(".problem")) old.remove();
    let upload = null;
    try {
      const isNew = this.collection.value === NEW;
      const collection = this.#collection();
      if (!collection) return;
      upload = new Upload(file, { collection, isNew, columns });
      uploads.set(card, upload);
      form.replaceWith(progress(upload));
      await upload.run();
    } catch (error) {
      card.append(errorMessage(error));
    } finally {
      if (upload) {
        upload.ended = true;
        card.append(finished(card, upload));
      }
    }
  }

  /** The chosen collection; a new one becomes the chosen one. Empty if its name is invalid. */
  #collection() {
    if (this.collection.value !== NEW) return this.collection.value;
    if (!this.name.reportValidity()) return "";
    const name = this.name.value;
    if (![...this.collection.options].some((option) => option.value === name)) this.collection.append(h("option", { value: name }, name));
    this.collection.value = name;
    this.name.value = "";
    this.#update();
    return name;
  }
}

/** A collection name made from a file name. */
function collectionName(file) {
  return file.name.toLowerCase().replace(/\.[^.]*$/, "").replace(/[^a-z0-9_-]+/g, "-").replace(/^[-_]+|-+$/g, "").slice(0, 64);
}

function errorMessage(error) {
  return error instanceof FileError ? h("div", { class: "problem", role: "alert" }, error.message) : problem(error);
}

function progress(upload) {
  const bar = h("progress", { max: upload.file.size || 1, value: 0, "aria-label": `Progress of ${upload.file.name}` });
  const status = h("p", { class: "status", role: "status" });
  const stop = button("Stop", () => upload.stop());
  const started = performance.now();
  const show = () => {
    if (upload.read < upload.file.size) bar.value = upload.read;
    else bar.removeAttribute("value"); // all rows are read, the last ones are being stored
    const seconds = (performance.now() - started) / 1000;
    const speed = upload.stored / Math.max(seconds, 0.001);
    const left = upload.read < upload.file.size && upload.stored ? `, about ${duration((seconds * (upload.file.size - upload.read)) / (upload.read - upload.skipped))} left` : "";
    const before = upload.before ? `${plural(upload.before, "row was", "rows were")} stored earlier; ` : "";
    status.textContent = upload.waiting
      ? `Waiting for the server; no data is lost. ${plural(upload.stored, "document")} stored.`
      : `${before}${plural(upload.stored, "document")} stored, ${count(Math.round(speed))} a second${left}`;
  };
  upload.addEventListener("change", show);
  show();
  return h("div", { class: "row loading" }, bar, stop, status);
}

/** The result of an upload, and links to continue. */
function finished(card, upload) {
  card.querySelector(".loading button").remove();
  card.querySelector("progress").setAttribute("value", upload.read);
  const rejected = upload.numRejected
    ? folded(`${plural(upload.numRejected, "row was", "rows were")} not stored`, h("ul", {}, upload.rejected.map(({ row, reason }) => h("li", {}, `Row ${row}: ${reason}`))))
    : null;
  const end = upload.stopped ? "Stopped. Drop the same file again to continue." : "Done.";
  const address = new URLSearchParams({ collection: upload.collection });
  const query = h("input", { type: "search", required: true, autocomplete: "off" });
  const form = h("form", { class: "ask" }, field("Search these documents", query), h("button", { type: "submit", class: "primary" }, "Search"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = `#search?${address}&${new URLSearchParams({ query: query.value })}`;
  });
  return h(
    "div",
    { class: "stack tight" },
    h("p", { role: "status" }, `${end} ${plural(upload.stored, "document")} stored in ${upload.collection}.`),
    rejected,
    upload.stored + upload.before > 0 && [form, h("a", { href: `#documents?${address}` }, "Browse them")],
  );
}
