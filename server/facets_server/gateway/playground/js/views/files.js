/** Files: what a collection holds, file by file; adds and deletes files. */

import { call } from "../api.js";
import { chooseCollection, collectionField, pages } from "../catalog.js";
import { button, count, field, h, opening, plural, table } from "../dom.js";
import { placeOf, title } from "../hits.js";
import { problem } from "../panel.js";
import { passage, Text } from "../text.js";
import { chosenFiles, store, uploads } from "../upload.js";

const NEW = "+"; // no name of a collection
const FILES_PER_PAGE = 100;
const DOCUMENTS_PER_PAGE = 20;
const MAX_RESTORABLE = 500; // documents that the page keeps to undo a deletion
const NUM_RESTORED = 16; // documents that are restored at a time
const PREVIEW = 160;
const REFRESH_MS = 1_000;

export async function open(root) {
  const { control, element, isNone } = await collectionField([[NEW, "A new collection \u2026"]]);
  const name = h("input", { autocomplete: "off", maxlength: 64, required: true, pattern: "[a-z0-9][a-z0-9_\\-]*", value: isNone ? "documents" : "" });
  const nameField = field("Name of the new collection", name, "Lower-case letters, digits, - and _.");
  const notice = h("div", { class: "row notice", role: "status" });
  const list = h("div", { class: "results" });
  let refresh = 0;

  const isNew = () => control.value === NEW;
  const target = () => (!isNew() ? control.value : name.checkValidity() ? name.value : "");

  /** Shows the files of the chosen collection. */
  async function show() {
    const collection = target();
    nameField.hidden = !isNew();
    chooseCollection(collection);
    history.replaceState(null, "", `#files?${new URLSearchParams(isNew() ? {} : { c: collection })}`);
    if (isNew()) return list.replaceChildren();
    const counted = await call("DocumentService/CountDocuments", { collection }).catch((error) => ({ error }));
    if (collection !== target()) return;
    const total = Number(counted.numDocuments ?? 0);
    if (control.selectedOptions) control.selectedOptions[0].textContent = `${collection} (${count(total)})`;
    const ask = total > 0 && h("a", { href: "#ask" }, "Ask");
    const files = pagedList(allFiles(collection, total), (file) => fileItem(collection, file, remove));
    list.replaceChildren(...(counted.error ? [problem(counted.error)] : [h("div", { class: "row" }, h("h2", {}, `${plural(total, "document")} in ${collection}`), ask), files]));
  }

  /** Deletes a file; offers to undo it if its documents are few enough to be kept here. */
  async function remove(collection, { source, numDocuments }) {
    const isFinal = Number(numDocuments) > MAX_RESTORABLE;
    if (isFinal && !confirm(`Delete ${source} from ${collection}? Its ${plural(numDocuments, "document")} cannot be restored here.`)) return;
    try {
      const documents = isFinal ? [] : (await Array.fromAsync(documentsIn(collection, source))).flat();
      const { numDeleted } = await call("DocumentService/DeleteDocuments", { collection, source });
      const undo = async () => {
        const failed = await restore(collection, documents).catch(problem);
        notice.replaceChildren(failed ?? `${source} is back in ${collection}.`);
        await show();
      };
      const undoing = button("Undo", undo, { hidden: isFinal });
      notice.replaceChildren(h("span", {}, `${source} (${plural(numDeleted ?? 0, "document")}) was deleted from ${collection}.`), undoing);
      await show();
      undoing.focus();
    } catch (error) {
      notice.replaceChildren(problem(error));
    }
  }

  /** Shows what was stored; a new collection becomes the chosen one. */
  async function reopen() {
    if (isNew() && target()) control.prepend(h("option", { value: name.value, selected: true }, name.value));
    await show();
  }

  const take = (files) => (target() ? store(files, target()) : name.reportValidity());
  const chooser = (label, look, folders = {}) => {
    const input = h("input", { type: "file", multiple: true, hidden: true, on: { change: () => take(chosenFiles(input.files)) }, ...folders });
    return [button(label, () => input.click(), look), input];
  };
  const stored = () => {
    clearTimeout(refresh);
    refresh = setTimeout(reopen, REFRESH_MS);
  };
  for (const changed of [control, name]) changed.addEventListener("change", show);
  uploads.addEventListener("stored", stored);
  root.replaceChildren(
    h("h1", {}, root.dataset.title),
    h("div", { class: "columns" }, element, nameField),
    h(
      "div",
      { class: "card drop" },
      h("p", {}, "Drop files or folders anywhere on this page to store them: texts, tables, PDF, office files, mail and more."),
      h("div", { class: "row" }, chooser("Choose files", { class: "primary" }), chooser("Choose a folder", {}, { webkitdirectory: true })),
    ),
    uploads,
    notice,
    list,
  );
  return {
    take,
    open: ({ c }) => {
      if ([...(control.options ?? [])].some(({ value }) => value === c)) control.value = c;
      return show();
    },
    close: () => {
      clearTimeout(refresh);
      uploads.removeEventListener("stored", stored);
    },
  };
}

/** Stores documents that were deleted. */
async function restore(collection, documents) {
  for (let start = 0; start < documents.length; start += NUM_RESTORED) {
    const batch = documents.slice(start, start + NUM_RESTORED);
    await call("DocumentService/Upsert", { collection, documents: batch.map(({ id, text, payload, source, parts }) => ({ id, text, payload, source, parts })) });
  }
}

/** A list that grows by a page when "More" is pressed. */
function pagedList(listing, draw) {
  const items = h("ol", { class: "hits" });
  const more = button("More", () => next());
  async function next() {
    more.disabled = true;
    const { value = [], done } = await listing.next().catch((error) => ({ value: [error], done: true }));
    items.append(...value.map((entry) => (entry instanceof Error ? h("li", {}, problem(entry)) : draw(entry))));
    more.hidden = done || value.isLast;
    more.disabled = false;
  }
  next();
  return h("div", { class: "stack tight" }, items, more);
}

/** Pages of the files of a collection; at the end, the documents that were not stored as a file. */
async function* allFiles(collection, total) {
  let rest = total;
  for await (const { sources = [], nextPageToken } of pages("DocumentService/ListSources", { collection, pageSize: FILES_PER_PAGE })) {
    rest -= sources.reduce((sum, { numDocuments }) => sum + Number(numDocuments), 0);
    const others = !nextPageToken && rest > 0 ? [{ source: "", numDocuments: rest }] : [];
    yield Object.assign([...sources, ...others], { isLast: !nextPageToken });
  }
}

async function* documentsIn(collection, source) {
  for await (const { documents = [], nextPageToken } of pages("DocumentService/ListDocuments", { collection, source, pageSize: DOCUMENTS_PER_PAGE })) {
    yield Object.assign(documents.filter((document) => (document.source ?? "") === source), { isLast: !nextPageToken });
  }
}

/** A file as one line that opens to its documents. */
function fileItem(collection, file, remove) {
  const label = file.source || "Documents that were not stored as files";
  const content = () => pagedList(documentsIn(collection, file.source), (document) => h("li", {}, documentDetails(document)));
  const summary = [h("strong", {}, label), " ", h("span", { class: "small" }, plural(file.numDocuments, "document"))];
  const deletion = file.source && button("Delete", () => remove(collection, file), { "aria-label": `Delete ${label} from ${collection}` });
  return h("li", { class: "card file" }, opening(summary, content), deletion);
}

/** A document as one line that opens to its text and payload. */
function documentDetails(document) {
  const { id, payload, text = "" } = document;
  const facts = Object.entries({ id, ...payload }).map(([key, value]) => [key, typeof value === "object" ? JSON.stringify(value) : String(value)]);
  const summary = [h("strong", {}, title(document)), " ", h("span", { class: "small" }, placeOf(document), " ", text.slice(0, PREVIEW), text.length > PREVIEW && " \u2026")];
  return opening(summary, () => h("div", { class: "stack" }, h("div", { class: "passage" }, passage(new Text(text), [])), table([], facts)));
}
