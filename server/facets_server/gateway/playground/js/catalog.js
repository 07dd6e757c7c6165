/** Models and collections of the server. */

import { call, ignored, storage } from "./api.js";
import { count, field, h, select } from "./dom.js";

const CHOSEN = "facets-collection";
const PAGE = 100;
let chosen = storage("localStorage", "getItem", CHOSEN) ?? "";

/** The collection that all views use, until another one is chosen; empty: none. */
export function chosenCollection() {
  return chosen;
}

export function chooseCollection(name) {
  chosen = name;
  storage("localStorage", "setItem", CHOSEN, name);
}

export async function* pages(method, request = {}) {
  let pageToken = "";
  do {
    const page = await call(method, { pageSize: PAGE, ...request, pageToken });
    yield page;
    pageToken = page.nextPageToken ?? "";
  } while (pageToken);
}

async function listAll(method, name) {
  const entries = [];
  for await (const page of pages(method)) entries.push(...(page[name] ?? []));
  return entries;
}

export function listModels() {
  return listAll("ModelService/ListModels", "models");
}

/** Models of some tasks as choices of a select, in the order of the tasks. */
export async function modelChoices(...tasks) {
  const known = await listModels();
  return tasks.flatMap((task) => known.filter((model) => model.task === task)).map(({ name }) => [name, name]);
}

/** All collections, sorted by name. */
export function listCollections() {
  return listAll("CollectionService/ListCollections", "collections");
}

/** A field for the collection: a select, or a text input if the key does not allow listing. */
export async function collectionField(further = []) {
  const collections = await listCollections().catch(ignored("permission_denied"));
  const choose = ({ target }) => chooseCollection(target.value);
  const on = { change: choose, filled: choose };
  if (!collections) {
    const control = h("input", { name: "c", required: true, autocomplete: "off", value: chosen, on });
    return { control, element: field("Collection", control, "Your key is limited to some collections: enter the name of one.") };
  }
  const choices = [...collections.map(({ name, numDocuments }) => [name, `${name} (${count(numDocuments)})`]), ...further];
  const isKnown = collections.some(({ name }) => name === chosen);
  if (!isKnown) chooseCollection((collections.find(({ numDocuments }) => Number(numDocuments ?? 0)) ?? collections[0])?.name ?? "");
  const control = select("c", choices, chosen, on);
  return { control, element: field("Collection", control), collections, isNone: collections.length === 0 };
}

/** Content of a view if the server has no collections. */
export function withoutCollections(root) {
  root.append(
    h("h1", {}, root.dataset.title),
    h("p", { class: "lede" }, "This server has no documents yet. Drop files anywhere on this page to store them."),
    h("div", {}, h("a", { class: "primary", href: "#files" }, "Add files")),
  );
}
