/** Lists the documents of a collection page by page; filters, opens, deletes and restores them. */

import { call } from "../api.js";
import { collectionField, withoutCollections } from "../catalog.js";
import { button, count, field, h, nothing, plural, select, table } from "../dom.js";
import { FilterRows } from "../filters.js";
import { title } from "../hits.js";
import { panel, problem } from "../panel.js";
import { excerpt, Text } from "../text.js";
import { explained } from "./facets.js";

const MAX_EXPLAINED = 8_000; // characters of a text whose facets are shown
const NUM_WORDS = 6;

export async function open(root) {
  const collection = await collectionField();
  if (collection.isNone) return withoutCollections(root);
  const filters = new FilterRows(collection.control);
  const token = h("input", { type: "hidden", name: "page" });
  const notice = h("div", { class: "row notice", role: "status" });
  const view = panel(root, {
    lede: "All documents of a collection, sorted by id. Open a document to see its facets. Deleted documents can be restored while this page is open.",
    controls: [
      h("div", { class: "columns" }, collection.element, field("Per page", select("size", [["10", "10"], ["25", "25"], ["100", "100"]], "25"))),
      filters.element,
      token,
    ],
    action: "Show",
    ask: (values, signal) => ask(values, filters, signal),
    show: (answer, values) => show(answer, values, { view: () => view, token, notice }),
  });
  view.form.after(notice);
  const firstPage = () => (token.value = "");
  for (const event of ["input", "change"]) view.form.addEventListener(event, firstPage);
  await filters.ready;
  return { ...view, open: (values) => view.open({ collection: collection.control.value, ...values }) };
}

async function ask(values, filters, signal) {
  const selection = { collection: values.collection, where: filters.message() };
  const [page, counted] = await Promise.all([
    call("DocumentService/ListDocuments", { ...selection, pageSize: Number(values.size), pageToken: values.page }, signal),
    call("DocumentService/CountDocuments", selection, signal),
  ]);
  return { documents: page.documents ?? [], next: page.nextPageToken ?? "", total: Number(counted.numDocuments ?? 0) };
}

function show({ documents, next, total }, values, { view, token, notice }) {
  const go = (page) => {
    token.value = page;
    return view().run();
  };
  if (!documents.length) {
    const text = total ? "This page is empty." : values.where ? "No document matches the filters." : ["This collection is empty. ", h("a", { href: `#add?${new URLSearchParams({ collection: values.collection })}` }, "Add files"), "."];
    return { nodes: [nothing("No documents", h("p", {}, text))], status: plural(total, "document") };
  }
  const boxes = documents.map((document) => h("input", { type: "checkbox", "aria-label": `Choose ${title(document)}` }));
  const chosen = () => documents.filter((_, index) => boxes[index].checked).map(({ id }) => id);
  const remove = button("Delete", () => deleteAll(chosen(), { collection: values.collection, view: view(), notice }), { disabled: true });
  const all = h("input", { type: "checkbox", id: "all-of-page" });
  const change = ({ target }) => {
    if (target === all) for (const box of boxes) box.checked = all.checked;
    const number = chosen().length;
    remove.disabled = number === 0;
    remove.textContent = number ? `Delete ${plural(number, "document")}` : "Delete";
    all.checked = number === documents.length;
  };
  const bar = h(
    "div",
    { class: "row actions" },
    h("div", { class: "row" }, h("label", { class: "row small", for: "all-of-page" }, all, "All of this page"), remove),
    h("div", { class: "row" }, values.page !== "" && button("First page", () => go("")), next !== "" && button("Next page", () => go(next))),
  );
  const items = documents.map((document, index) => h("li", { class: "card document" }, boxes[index], documentDetails(document, values.collection)));
  return {
    nodes: [h("div", { class: "stack", on: { change } }, bar, h("ol", { class: "hits" }, items))],
    status: `${plural(total, "document")}; this page has ${count(documents.length)}, ${documents[0].id} to ${documents.at(-1).id}`,
  };
}

/** A document as one line that opens to its text and facets. */
function documentDetails(document, collection) {
  const text = document.text ?? "";
  const part = excerpt(new Text(text.slice(0, 400)), null, 160);
  const summary = [h("strong", {}, title(document)), " ", h("span", { class: "small" }, text.slice(0, part.end), text.length > part.end && " \u2026")];
  const toggle = async ({ target }) => {
    if (!target.open || target.childElementCount > 1) return;
    const content = h("div", { class: "stack" }, h("p", { class: "status" }, "Asking the server"));
    target.append(content);
    content.replaceChildren(...(await documentContent(document, collection).catch((error) => [problem(error)])));
  };
  return h("details", { on: { toggle } }, h("summary", {}, summary));
}

async function documentContent(document, name) {
  const { collection } = await call("CollectionService/GetCollection", { name });
  const text = document.text ?? "";
  const facts = [["Id", document.id], ["Revision", count(document.revision)], ["Parts", document.parts?.length ?? 1]];
  for (const [name, value] of Object.entries(document.payload ?? {})) facts.push([name, typeof value === "object" ? JSON.stringify(value) : String(value)]);
  if (!text.trim()) return [table([], facts)];
  const read = Array.from(text).slice(0, MAX_EXPLAINED).join("");
  const reply = await call("EmbeddingService/Explain", { texts: [read], model: collection.model, numWords: NUM_WORDS });
  const rest = read.length < text.length ? [h("p", { class: "small" }, `The first ${count(MAX_EXPLAINED)} of ${count(text.length)} characters.`)] : [];
  return [table([], facts), ...rest, ...explained(reply.explanations[0], read).nodes];
}

/** Deletes documents and offers to restore them; the page keeps them until it is left. */
async function deleteAll(ids, { collection, view, notice }) {
  try {
    const { documents = [] } = await call("DocumentService/GetDocuments", { collection, ids });
    const done = await call("DocumentService/DeleteDocuments", { collection, ids });
    if (!documents.length) {
      notice.replaceChildren(`${plural(ids.length, "document was", "documents were")} already deleted.`); // in another tab, or by another user
      return await view.run();
    }
    const undo = button("Restore", () => restore(documents, { collection, view, notice }));
    notice.replaceChildren(h("span", {}, `${plural(done.numDeleted ?? 0, "document")} deleted from ${collection}.`), undo);
    await view.run();
    undo.focus();
  } catch (error) {
    notice.replaceChildren(problem(error));
  }
}

async function restore(documents, { collection, view, notice }) {
  try {
    await call("DocumentService/Upsert", { collection, documents: documents.map(({ id, text, payload }) => ({ id, text, payload })) });
    notice.replaceChildren(`${plural(documents.length, "document")} restored.`);
    await view.run();
  } catch (error) {
    notice.prepend(problem(error));
  }
}
