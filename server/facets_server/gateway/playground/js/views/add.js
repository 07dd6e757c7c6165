/** Uploads dropped or chosen files into a collection: assigns columns and shows progress. */

import { collectionChoices, listCollections } from "../catalog.js";
import { button, field, folded, form as formOf, h, plural, select, submitButton } from "../dom.js";
import { ACCEPT, documentOf, FileError, guessed, isOneDocument, READABLE, rowsOf } from "../file_rows.js";
import { problem } from "../panel.js";
import { Upload } from "../upload.js";

const NUM_SAMPLED = 50; // rows that columns are guessed from
const NEW = "+ new collection";
const files = h("div", { class: "results" }); // cards; uploads continue while another view is shown

addEventListener("beforeunload", (event) => files.querySelector("progress") && event.preventDefault());

export async function open(root) {
  const collection = select("collection", [[NEW, "A new collection"], ...collectionChoices(await listCollections())]);
  const name = h("input", { name: "name", autocomplete: "off", maxlength: 64, pattern: "[a-z0-9][a-z0-9_\\-]*" });
  const nameField = field("Name", name, "Lower-case letters, digits, - and _; at most 64.");
  const chosen = h("input", { type: "file", multiple: true, accept: ACCEPT });
  const isKnown = (value) => [...collection.options].some((option) => option.value === value);

  function choose(value) {
    if (isKnown(value)) collection.value = value;
    nameField.hidden = collection.value !== NEW;
    name.required = collection.value === NEW;
  }

  /** The chosen collection; a new one becomes the chosen one. Empty if its name is invalid. */
  function target() {
    if (collection.value !== NEW) return collection.value;
    if (!name.reportValidity()) return "";
    const value = name.value;
    if (!isKnown(value)) collection.append(h("option", { value }, value));
    choose(value);
    name.value = "";
    return value;
  }

  /** Takes files that were chosen, or dropped anywhere on the page. A collection named like the file is chosen. */
  async function take(taken) {
    for (const file of [...taken]) {
      if (collection.value === NEW && !name.value) choose((name.value = collectionName(file)));
      const card = h("section", { class: "card stack tight", "aria-label": file.name }, h("h2", {}, file.name));
      files.prepend(card);
      await showColumns(card, file, store).catch((error) => card.append(errorMessage(error)));
    }
  }

  async function store(card, form, { file, columns }) {
    const isNew = collection.value === NEW;
    const upload = new Upload(file, { collection: target(), isNew, columns });
    if (!upload.collection) return;
    form.replaceWith(progress(upload));
    try {
      await upload.run();
    } catch (error) {
      card.append(errorMessage(error));
    }
    card.querySelector(".loading").replaceWith(finished(upload));
  }

  collection.addEventListener("change", () => choose(collection.value));
  chosen.addEventListener("change", async () => {
    await take(chosen.files);
    chosen.value = "";
  });
  root.replaceChildren(
    h("h1", {}, "Add files"),
    h("p", { class: "lede" }, "Stores files as documents, which can be searched at once. Uploads continue while you use other views."),
    h("div", { class: "card columns" }, field("Into", collection), nameField),
    h("div", { class: "card drop" }, h("h2", {}, "Drop files here"), field("or choose them", chosen, `${READABLE}. A file stays on this machine until you press Store.`)),
    files,
  );
  choose(NEW);
  return {
    take,
    open: (values) => choose(values.collection),
    close: () => files.replaceChildren(...[...files.children].filter((card) => card.querySelector("progress"))),
  };
}

/** Shows the columns, a preview, and a button that calls `store`. */
async function showColumns(card, file, store) {
  const rows = [];
  for await (const row of rowsOf(file)) {
    if (typeof row !== "string") rows.push(row);
    if (rows.length === NUM_SAMPLED) break;
  }
  if (!rows.length) throw new FileError(`${file.name} has no valid row.`);
  const guess = guessed(rows);
  const names = guess.names.map((name) => [name, name]);
  const columns = [
    field("Text", select("text", names, guess.text)),
    field("Title", select("title", [["", "none"], ...names], guess.title)),
    field("Id", select("id", [["", "file name and row"], ...names], guess.id)),
  ];
  const preview = h("p", { class: "passage preview" });
  const button = submitButton("Store");
  const form = formOf(
    { class: "stack tight" },
    () => store(card, form, { file, columns: Object.fromEntries(new FormData(form)) }),
    h("div", { class: "columns", hidden: isOneDocument(file) }, columns),
    [h("h3", {}, "First document"), preview, h("div", {}, button)],
  );
  const show = () => {
    const first = documentOf(rows[0], Object.fromEntries(new FormData(form)), file.name);
    preview.textContent = typeof first === "string" ? `The first row ${first}.` : [first.payload.title, first.text.slice(0, 280)].filter(Boolean).join(": ");
  };
  form.addEventListener("change", show);
  show();
  card.append(form);
  button.focus();
}

function collectionName(file) {
  return file.name.toLowerCase().replace(/\.[^.]*$/, "").replace(/[^a-z0-9_-]+/g, "-").replace(/^[-_]+|-+$/g, "").slice(0, 64);
}

function errorMessage(error) {
  return error instanceof FileError ? h("div", { class: "problem", role: "alert" }, error.message) : problem(error);
}

function progress(upload) {
  const bar = h("progress", { max: upload.file.size || 1, value: 0, "aria-label": `Progress of ${upload.file.name}` });
  const status = h("p", { class: "status", role: "status" });
  const show = () => {
    bar.value = upload.read;
    const before = upload.before ? `${plural(upload.before, "row was", "rows were")} stored earlier; ` : "";
    status.textContent = `${upload.waiting ? "Waiting for the server; no data is lost. " : before}${plural(upload.stored, "document")} stored.`;
  };
  upload.changed = show;
  show();
  return h("div", { class: "row loading" }, bar, button("Stop", () => upload.stop()), status);
}

/** The result of an upload, and links to continue. */
function finished(upload) {
  const reasons = upload.rejected.map(({ row, reason }) => h("li", {}, `Row ${row}: ${reason}`));
  const end = upload.stopped ? "Stopped. Drop the same file again to continue." : "Done.";
  const address = new URLSearchParams({ collection: upload.collection });
  const query = h("input", { type: "search", required: true, autocomplete: "off" });
  const search = () => (location.hash = `#search?${address}&${new URLSearchParams({ query: query.value })}`);
  return h(
    "div",
    { class: "stack tight" },
    h("p", { role: "status" }, `${end} ${plural(upload.stored, "document")} stored in ${upload.collection}.`),
    reasons.length > 0 && folded(`${plural(upload.numRejected, "row was", "rows were")} not stored`, h("ul", {}, reasons)),
    upload.stored + upload.before > 0 && [
      formOf({ class: "ask" }, search, field("Search these documents", query), submitButton("Search")),
      h("a", { href: `#documents?${address}` }, "Browse them"),
    ],
  );
}
