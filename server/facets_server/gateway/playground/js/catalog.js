/** Models and collections of the server. */

import { call } from "./api.js";
import { count, field, h, select } from "./dom.js";

const PAGE = 100;
let models = null;

/** All pages of a list. */
async function listAll(method, name) {
  const entries = [];
  let pageToken = "";
  do {
    const reply = await call(method, { pageSize: PAGE, pageToken });
    entries.push(...(reply[name] ?? []));
    pageToken = reply.nextPageToken ?? "";
  } while (pageToken);
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
  const models = (await listModels()).filter((model) => tasks.includes(model.task));
  models.sort((first, second) => tasks.indexOf(first.task) - tasks.indexOf(second.task));
  return models.map(({ name }) => [name, name]);
}

/** All collections, sorted by name. */
export function listCollections() {
  return listAll("CollectionService/ListCollections", "collections");
}

/**
 * A field for the collection: a select, or a text input if the key does not allow listing.
 * @returns {Promise<{control: HTMLElement, element: HTMLElement, count: number, hasSamples: boolean}>} `count` is the
 *   number of collections, infinite if unknown.
 */
export async function collectionField() {
  try {
    const collections = await listCollections();
    const hasSamples = collections.some(({ name }) => name === "samples");
    const choices = collections.map(({ name, numDocuments = 0 }) => [name, `${name} (${count(numDocuments)})`]);
    const control = select("collection", choices, hasSamples ? "samples" : "");
    return { control, element: field("Collection", control), count: collections.length, hasSamples };
  } catch (error) {
    if (error.code !== "permission_denied") throw error;
    const control = h("input", { name: "collection", required: true, autocomplete: "off" });
    const hint = "Your key is limited to some collections: enter the name of one.";
    return { control, element: field("Collection", control, hint), count: Infinity, hasSamples: false };
  }
}

/** Content of a view if the server has no collections. */
export function withoutCollections(root, title) {
  root.append(
    h("h1", {}, title),
    h("p", { class: "lede" }, "This server has no documents yet."),
    h("p", {}, h("a", { href: "#add" }, "Add files here"), ", or with a command:"),
    h("pre", { tabindex: 0, "aria-label": "Command" }, h("code", {}, "facets index YOUR-FILE.csv --collection mine --create")),
  );
  return { open: () => {}, close: () => {} };
}

/** Clears the cache, because another key may see other models. */
export function forget() {
  models = null;
}
