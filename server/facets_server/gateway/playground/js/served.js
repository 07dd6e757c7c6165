/** What the server has: models and collections, asked once and kept. */

import { call } from "./api.js";
import { count, field, h, select } from "./dom.js";

const PAGE = 100;
let models = null;

/** All pages of a list. */
async function all(method, name) {
  const found = [];
  let pageToken = "";
  do {
    const reply = await call(method, { pageSize: PAGE, pageToken });
    found.push(...(reply[name] ?? []));
    pageToken = reply.nextPageToken ?? "";
  } while (pageToken);
  return found;
}

/** All models; asked again after a failure or {@link forget}. */
export function listModels() {
  models ??= all("ModelService/ListModels", "models").catch((error) => {
    models = null;
    throw error;
  });
  return models;
}

/** Models of these tasks as choices of a select, the default of the first task first. */
export async function modelChoices(...tasks) {
  const found = (await listModels()).filter((model) => tasks.includes(model.task));
  found.sort((first, second) => tasks.indexOf(first.task) - tasks.indexOf(second.task));
  return found.map((model) => [model.name, model.name]);
}

/** All collections, in the order of their names. */
export function listCollections() {
  return all("CollectionService/ListCollections", "collections");
}

/**
 * The field of the collection: a choice of all of them, or a name to type where the key may not list them.
 * @returns {Promise<{control: HTMLElement, element: HTMLElement, count: number, hasSamples: boolean}>} `count` is the
 *   number of collections, infinite where it is not known.
 */
export async function collectionField() {
  try {
    const found = await listCollections();
    const hasSamples = found.some((one) => one.name === "samples");
    const choices = found.map((one) => [one.name, `${one.name} (${count(one.numDocuments ?? 0)})`]);
    const control = select("collection", choices, hasSamples ? "samples" : "");
    return { control, element: field("Collection", control), count: found.length, hasSamples };
  } catch (error) {
    if (error.code !== "permission_denied") throw error;
    const control = h("input", { name: "collection", required: true, autocomplete: "off" });
    const hint = "Your key is bound to some collections: type the name of one.";
    return { control, element: field("Collection", control, hint), count: Infinity, hasSamples: false };
  }
}

/** A view of documents on a server that holds none yet. */
export function withoutCollections(root, title) {
  root.append(
    h("h1", {}, title),
    h("p", { class: "lede" }, "This server holds no documents yet."),
    h("p", {}, h("a", { href: "#add" }, "Add files here"), ", or by command:"),
    h("pre", { tabindex: 0, "aria-label": "Command" }, h("code", {}, "facets index YOUR-FILE.csv --collection mine --create")),
  );
  return { open: () => {}, close: () => {} };
}

/** Forgets what was asked, when another key may see other things. */
export function forget() {
  models = null;
}
