/** Files into a collection: dropped or chosen, columns said, progress shown. */

import { count, field, h, lasting, plural, select } from "../dom.js";
import { Load } from "../loading.js";
import { problem } from "../panel.js";
import { ACCEPT, documentOf, FileError, guessed, isOneDocument, READABLE, rowsOf } from "../records.js";
import { listCollections } from "../served.js";

const LOOKED_AT = 50; // rows, for columns and their types
const NEW = "+ new collection";
/** Cards of files that are on their way, also while another view is shown; one that ends then is seen on return. */
const loads = new Map();
addEventListener("beforeunload", (event) => [...loads.values()].some((load) => !load.ended) && event.preventDefault());

/** Fills `root` with the view. */
export async function open(root) {
  const known = await listCollections();
  return new Adding(root, known);
}

class Adding {
  constructor(root, known) {
    this.collection = select("collection", [[NEW, "A new collection"], ...known.map((one) => [one.name, `${one.name} (${count(one.numDocuments ?? 0)})`])]);
    this.name = h("input", { name: "name", autocomplete: "off", maxlength: 64, pattern: "[a-z0-9][a-z0-9_\\-]*" });
    this.nameField = field("Its name", this.name, "Small letters, digits, - and _; 64 at most.");
    this.input = h("input", { type: "file", multiple: true, accept: ACCEPT });
    this.files = h("div", { class: "results" }, [...loads.keys()]);
    this.zone = h(
      "div",
      { class: "card drop" },
      h("p", { class: "drop-word" }, "Drop files here"),
      field("or choose them", this.input, `${READABLE}. A file stays on this machine until its columns are right and you press Store.`),
    );
    root.replaceChildren(
      h("h1", {}, "Add files"),
      h("p", { class: "lede" }, "Documents from files of your own, ready to be searched in the moment they are stored. Storing goes on while you look at other views."),
      h("div", { class: "card columns" }, field("Into", this.collection), this.nameField),
      this.zone,
      this.files,
    );
    this.#listen();
    this.#named();
  }

  /** The address names the collection. */
  open({ collection }) {
    if (collection && [...this.collection.options].some((option) => option.value === collection)) this.collection.value = collection;
    this.#named();
  }

  close() {
    for (const [card, load] of loads) if (load.ended) loads.delete(card);
  }

  #listen() {
    this.collection.addEventListener("change", () => this.#named());
    this.input.addEventListener("change", () => {
      this.take(this.input.files);
      this.input.value = "";
    });
    for (const kind of ["dragenter", "dragover"]) this.zone.addEventListener(kind, () => this.zone.classList.add("over"));
    for (const kind of ["dragleave", "drop"]) this.zone.addEventListener(kind, () => this.zone.classList.remove("over"));
  }

  #named() {
    this.nameField.hidden = this.collection.value !== NEW;
    this.name.required = this.collection.value === NEW;
  }

  /** Files that were chosen, or dropped anywhere on the page. A collection that is called so already is chosen. */
  async take(files) {
    for (const file of [...files]) {
      if (this.collection.value === NEW && !this.name.value) {
        this.name.value = nameOf(file);
        if ([...this.collection.options].some((option) => option.value === this.name.value)) this.open({ collection: this.name.value });
      }
      const card = h("section", { class: "card stack tight", "aria-label": file.name }, h("h2", {}, file.name));
      this.files.prepend(card);
      try {
        await this.#ask(card, file);
      } catch (error) {
        card.append(told(error));
      }
    }
  }

  /** What becomes of the columns, and a button that stores. */
  async #ask(card, file) {
    const rows = [];
    for await (const row of rowsOf(file)) {
      if (typeof row !== "string") rows.push(row);
      if (rows.length === LOOKED_AT) break;
    }
    if (!rows.length) throw new FileError(`${file.name} has no row that could be read.`);
    const guess = guessed(rows);
    const columns = guess.names.map((name) => [name, name]);
    const text = select("text", columns, guess.text);
    const title = select("title", [["", "none"], ...columns], guess.title);
    const id = select("id", [["", "file name and row"], ...columns], guess.id);
    const preview = h("p", { class: "passage preview" });
    const chosen = () => ({ text: text.value, title: title.value, id: id.value });
    const show = () => {
      const first = documentOf({ ...rows[0] }, chosen(), file.name);
      preview.textContent = typeof first === "string" ? `The first row ${first}.` : [first.payload.title, first.text.slice(0, 280)].filter(Boolean).join(": ");
    };
    for (const control of [text, title, id]) control.addEventListener("change", show);
    show();
    const store = h("button", { type: "submit", class: "primary" }, "Store");
    const form = h("form", { class: "stack tight" }, !isOneDocument(file) && h("div", { class: "columns" }, field("Text", text), field("Title", title), field("Id", id)), h("h3", {}, "The first one"), preview, h("div", {}, store));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#store(card, form, { file, columns: chosen() });
    });
    card.append(form);
    store.focus();
  }

  async #store(card, form, { file, columns }) {
    for (const old of card.querySelectorAll(".problem")) old.remove();
    let load = null;
    try {
      const isNew = this.collection.value === NEW;
      const collection = this.#collection();
      if (!collection) return;
      load = new Load(file, { collection, isNew, columns });
      loads.set(card, load);
      form.replaceWith(progress(load));
      await load.run();
    } catch (error) {
      card.append(told(error));
    } finally {
      if (load) {
        load.ended = true;
        card.append(finished(card, load));
      }
    }
  }

  /** The chosen collection, a new one chosen from now on; empty where its name is not right. */
  #collection() {
    if (this.collection.value !== NEW) return this.collection.value;
    if (!this.name.reportValidity()) return "";
    const name = this.name.value;
    if (![...this.collection.options].some((option) => option.value === name)) this.collection.append(h("option", { value: name }, name));
    this.collection.value = name;
    this.name.value = "";
    this.#named();
    return name;
  }
}

/** A name for a collection, after a file. */
function nameOf(file) {
  return file.name.toLowerCase().replace(/\.[^.]*$/, "").replace(/[^a-z0-9_-]+/g, "-").replace(/^[-_]+|-+$/g, "").slice(0, 64);
}

function told(error) {
  return error instanceof FileError ? h("div", { class: "problem", role: "alert" }, error.message) : problem(error);
}

function progress(load) {
  const bar = h("progress", { max: load.file.size || 1, value: 0, "aria-label": `Progress of ${load.file.name}` });
  const status = h("p", { class: "status", role: "status" });
  const stop = h("button", { type: "button", class: "quiet", on: { click: () => load.stop() } }, "Stop");
  const started = performance.now();
  const show = () => {
    if (load.read < load.file.size) bar.value = load.read;
    else bar.removeAttribute("value"); // all is read, the last is being stored
    const seconds = (performance.now() - started) / 1000;
    const speed = load.stored / Math.max(seconds, 0.001);
    const left = load.read < load.file.size && load.stored ? `, about ${lasting((seconds * (load.file.size - load.read)) / (load.read - load.skipped))} left` : "";
    const before = load.before ? `${plural(load.before, "row was", "rows were")} stored before; ` : "";
    status.textContent = load.waiting
      ? `Waiting for the server; nothing is lost. ${plural(load.stored, "document")} stored.`
      : `${before}${plural(load.stored, "document")} stored, ${count(Math.round(speed))} a second${left}`;
  };
  load.addEventListener("change", show);
  show();
  return h("div", { class: "row loading" }, bar, stop, status);
}

/** What came of it, and where to go on. */
function finished(card, load) {
  card.querySelector(".loading button").remove();
  card.querySelector("progress").setAttribute("value", load.read);
  const rejected = load.numRejected
    ? h("details", { class: "folded" }, h("summary", {}, `${plural(load.numRejected, "row was", "rows were")} not stored`), h("ul", {}, load.rejected.map(({ row: number, why }) => h("li", {}, `Row ${number}: ${why}`))))
    : null;
  const end = load.stopped ? "Stopped. The same file, dropped again, goes on from there." : "Done.";
  const asked = new URLSearchParams({ collection: load.collection });
  const query = h("input", { type: "search", required: true, autocomplete: "off" });
  const form = h("form", { class: "ask" }, field("Ask them something", query), h("button", { type: "submit", class: "primary" }, "Search"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = `#search?${asked}&${new URLSearchParams({ query: query.value })}`;
  });
  return h(
    "div",
    { class: "stack tight" },
    h("p", { role: "status" }, `${end} ${plural(load.stored, "document")} stored in ${load.collection}.`),
    rejected,
    load.stored + load.before > 0 && [form, h("a", { href: `#documents?${asked}` }, "Browse them")],
  );
}
