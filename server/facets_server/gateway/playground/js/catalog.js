/** Models and collections of the server. */

import { call, ignored } from "./api.js";
import { command, count, field, h, select } from "./dom.js";

const PAGE = 100;
let models = null;

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

/** All models, cached until a failure or {@link forget}. */
export function listModels() {
  models ??= listAll("ModelService/ListModels", "models").catch((error) => {
    models = null;
    throw error;
  });
  return models;
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

export function collectionChoices(collections) {
  return collections.map(({ name, numDocuments }) => [name, `${name} (${count(numDocuments)})`]);
}

/** A field for the collection: a select, or a text input if the key does not allow listing. */
export async function collectionField() {
  const collections = await listCollections().catch(ignored("permission_denied"));
  if (!collections) {
    const control = h("input", { name: "collection", required: true, autocomplete: "off" });
    return { control, element: field("Collection", control, "Your key is limited to some collections: enter the name of one.") };
  }
  const hasSamples = collections.some(({ name }) => name === "samples");
  const control = select("collection", collectionChoices(collections), "samples");
  return { control, element: field("Collection", control), isNone: collections.length === 0, hasSamples };
}

/** Content of a view if the server has no collections. */
export function withoutCollections(root) {
  root.append(
    h("h1", {}, root.dataset.title),
    h("p", { class: "lede" }, "This server has no documents yet."),
    h("p", {}, h("a", { href: "#add" }, "Add files here"), ", or with a command:"),
    command("facets index YOUR-FILE.csv --collection mine --create"),
  );
}

/** Clears the cache, because another key may see other models. */
export function forget() {
  models = null;
}
