/** The documents of a collection: page by page, by filter, one with its facets; deleted, and brought back. */

import { call } from "../api.js";
import { count, field, h, plural, select, table } from "../dom.js";
import { FilterRows } from "../filters.js";
import { title } from "../hits.js";
import { panel, problem } from "../panel.js";
import { collectionField, withoutCollections } from "../served.js";
import { excerpt, Text } from "../text.js";
import { explained } from "./facets.js";
import { learnFields } from "./search.js";

const MOST_EXPLAINED = 8_000; // characters of a text whose facets are shown
const NUM_WORDS = 6;

/** Fills `root` with the view. */
export async function open(root) {
  const collection = await collectionField();
  if (collection.count === 0) return withoutCollections(root, "Documents");
  const filters = new FilterRows();
  const token = h("input", { type: "hidden", name: "page" });
  const notice = h("div", { class: "notice", role: "status" });
  const view = panel(root, {
    name: "documents",
    title: "Documents",
    lede: "Everything a collection holds, in the order of its ids. Open a document to see its facets; what you delete can be brought back while this page is open.",
    controls: [
      h("div", { class: "columns" }, collection.element, field("On a page", select("size", [["10", "10"], ["25", "25"], ["100", "100"]], "25"))),
      filters.element,
      token,
    ],
    action: "Show",
    examples: [],
    ask: (values, signal) => ask(values, filters, signal),
    show: (answer, values) => show(answer, values, { view: () => view, token, notice }),
  });
  view.form.after(notice);
  const learn = () => learnFields(collection.control.value, filters);
  const begin = () => (token.value = "");
  collection.control.addEventListener("change", () => {
    begin();
    learn();
  });
  view.form.addEventListener("input", begin);
  collection.control.addEventListener("filled", learn);
  await learn();
  return { ...view, open: (values) => view.open({ collection: collection.control.value, ...values }) };
}

async function ask(values, filters, signal) {
  const wanted = { collection: values.collection, where: filters.message() };
  const [page, counted] = await Promise.all([
    call("DocumentService/ListDocuments", { ...wanted, pageSize: Number(values.size), pageToken: values.page }, signal),
    call("DocumentService/CountDocuments", wanted, signal),
  ]);
  return { documents: page.documents ?? [], next: page.nextPageToken ?? "", total: Number(counted.numDocuments ?? 0) };
}

function show({ documents, next, total }, values, { view, token, notice }) {
  const go = (page) => {
    token.value = page;
    return view().run();
  };
  if (!documents.length) {
    const text = total ? "This page is empty." : values.where ? "No document matches." : ["This collection is empty. ", h("a", { href: `#add?${new URLSearchParams({ collection: values.collection })}` }, "Add files"), "."];
    return { nodes: [h("div", { class: "nothing card" }, h("h2", {}, "Nothing here"), h("p", {}, text))], status: plural(total, "document") };
  }
  const boxes = documents.map((document) => h("input", { type: "checkbox", "aria-label": `Choose ${title(document)}` }));
  const chosen = () => documents.filter((_, place) => boxes[place].checked);
  const remove = h("button", { type: "button", class: "quiet", disabled: true }, "Delete");
  const all = h("input", { type: "checkbox", id: "all-of-page" });
  const follow = () => {
    const number = chosen().length;
    remove.disabled = number === 0;
    remove.textContent = number ? `Delete ${plural(number, "document")}` : "Delete";
    all.checked = number === documents.length;
  };
  for (const box of boxes) box.addEventListener("change", follow);
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    follow();
  });
  remove.addEventListener("click", () => deleteAll(chosen().map((document) => document.id), { collection: values.collection, view: view(), notice }));
  const button = (label, page, there) => there && h("button", { type: "button", class: "quiet", on: { click: () => go(page) } }, label);
  const bar = h(
    "div",
    { class: "row actions" },
    h("div", { class: "row" }, h("label", { class: "row small", for: "all-of-page" }, all, "All of this page"), remove),
    h("div", { class: "row" }, button("First page", "", values.page !== ""), button("Next page", next, next !== "")),
  );
  const items = documents.map((document, place) => h("li", { class: "card document" }, boxes[place], opened(document, values.collection)));
  const last = documents.at(-1).id;
  return {
    nodes: [bar, h("ol", { class: "hits plain" }, items)],
    status: `${plural(total, "document")}; on this page ${plural(documents.length, "one", "of them")}, ${documents[0].id} to ${last}`,
  };
}

/** A document as a line that opens into its text and facets. */
function opened(document, collection) {
  const text = document.text ?? "";
  const part = excerpt(new Text(text.slice(0, 400)), null, 160);
  const details = h(
    "details",
    {},
    h("summary", {}, h("strong", {}, title(document)), " ", h("span", { class: "small" }, text.slice(0, part.end), text.length > part.end && " \u2026")),
  );
  details.addEventListener("toggle", async () => {
    if (!details.open || details.childElementCount > 1) return;
    const inside = h("div", { class: "stack" }, h("p", { class: "status" }, "Asking the server"));
    details.append(inside);
    try {
      inside.replaceChildren(...(await whole(document, collection)));
    } catch (error) {
      inside.replaceChildren(problem(error));
    }
  });
  return details;
}

async function whole(document, collection) {
  const known = await call("CollectionService/GetCollection", { name: collection });
  const text = document.text ?? "";
  const facts = [["Id", document.id], ["Revision", count(document.revision ?? 0)], ["Parts", document.parts?.length ?? 1]];
  for (const [name, value] of Object.entries(document.payload ?? {})) facts.push([name, typeof value === "object" ? JSON.stringify(value) : String(value)]);
  if (!text.trim()) return [table([], facts)];
  const read = Array.from(text).slice(0, MOST_EXPLAINED).join("");
  const reply = await call("EmbeddingService/Explain", { texts: [read], model: known.collection.model, numWords: NUM_WORDS });
  const rest = read.length < text.length ? [h("p", { class: "small" }, `The first ${count(MOST_EXPLAINED)} of ${count(text.length)} characters.`)] : [];
  return [table([], facts), ...rest, ...explained(reply.explanations[0], read).nodes];
}

/** Deletes, and says how to bring it back: the documents are kept here until another page is opened. */
async function deleteAll(ids, { collection, view, notice }) {
  try {
    const { documents = [] } = await call("DocumentService/GetDocuments", { collection, ids });
    const done = await call("DocumentService/DeleteDocuments", { collection, ids });
    if (!documents.length) {
      notice.replaceChildren(`${plural(ids.length, "document was", "documents were")} gone already.`); // another tab, or somebody else
      return await view.run();
    }
    const undo = h("button", { type: "button", class: "quiet" }, "Bring back");
    undo.addEventListener("click", () => bringBack(documents, { collection, view, notice }));
    notice.replaceChildren(h("span", {}, `${plural(done.numDeleted ?? 0, "document")} deleted from ${collection}.`), undo);
    await view.run();
    undo.focus();
  } catch (error) {
    notice.replaceChildren(problem(error));
  }
}

async function bringBack(documents, { collection, view, notice }) {
  try {
    await call("DocumentService/Upsert", { collection, documents: documents.map(({ id, text, payload }) => ({ id, text, payload })) });
    notice.replaceChildren(h("span", {}, `${plural(documents.length, "document is", "documents are")} back.`));
    await view.run();
  } catch (error) {
    notice.prepend(problem(error));
  }
}
