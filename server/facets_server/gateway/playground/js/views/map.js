/** A map of a collection: similar documents are close together, colours are themes. */

import { call } from "../api.js";
import { collectionField, withoutCollections } from "../catalog.js";
import { Chart } from "../chart.js";
import { button, count, field, h, highlightButton, hue, plural, select } from "../dom.js";
import { title } from "../hits.js";
import { panel } from "../panel.js";
import { excerpt, nameOf, passage, Text, wordsOf } from "../text.js";

const SIZES = [["2000", "2,000"], ["10000", "10,000"], ["100000", "100,000"]];
const TIMEOUT_MS = 300_000; // large collections take minutes
const DRAWN_AT_ONCE = 3_000; // documents of a collection whose map needs no press of the button
const MAX_LISTED = 40;
const HOVER_MS = 120; // delay before the title of a point is fetched

export async function open(root) {
  const collection = await collectionField();
  if (collection.isNone) return withoutCollections(root);
  const view = panel(root, {
    lede: "Similar documents appear close together. Colours are themes, named by their nearest words.",
    controls: [h("div", { class: "columns" }, collection.element, field("Maximum documents", select("size", SIZES, "10000")))],
    action: "Draw the map",
    ask: ({ c: name, size }, signal) => call("CollectionService/MapCollection", { name, maxDocuments: Number(size) }, signal, TIMEOUT_MS),
    show: (drawn, values) => ({ nodes: [new Atlas(values.c, drawn).element], status: summary(drawn) }),
  });
  const isSmall = (collection.collections ?? []).some(({ name, numDocuments }) => name === collection.control.value && numDocuments > 0 && numDocuments <= DRAWN_AT_ONCE);
  return { ...view, open: (values) => (Object.keys(values).length ? view.open(values) : isSmall && view.run()) };
}

function summary({ ids, numDocuments, method }) {
  const sample = ids.length < Number(numDocuments) ? `, a random sample of ${count(numDocuments)}` : "";
  return `${plural(ids.length, "document")} drawn${sample}, by ${method}`;
}

/** The map, its legend, and the documents being read. */
class Atlas {
  constructor(collection, { ids, points, documentThemes = [], themes }) {
    const numbers = floats(points);
    const dots = ids.map((id, index) => ({ x: numbers[2 * index], y: numbers[2 * index + 1], key: id, hue: documentThemes[index] ?? 0 }));
    const labels = themes.map(({ words = [] }, theme) => label(theme, words, dots)).filter(Boolean);
    const keys = "Arrow keys move between documents, plus and minus zoom, 0 shows all, S lists the visible documents.";
    this.collection = collection;
    this.themes = themes;
    this.read = new Map(); // id -> fetched document
    const on = { choose: (point) => this.#open(point), hover: (point) => this.#showTip(point), list: (points) => this.#list(points) };
    this.chart = new Chart(`Map of the collection. ${keys}`, dots, labels, on);
    this.reading = h("section", { class: "card stack reading", "aria-live": "polite", "aria-label": "Document" });
    this.reading.append(h("p", { class: "hint" }, "Press a point, or use the arrow keys on the map, to read a document. \u201cList\u201d lists the visible documents."));
    this.tip = h("span", { class: "tip", "aria-hidden": "true" });
    const tools = [
      ["List", "List the visible documents", () => this.chart.list()],
      ["+", "+ Zoom in", () => this.chart.zoom(1.5)],
      ["\u2212", "\u2212 Zoom out", () => this.chart.zoom(1 / 1.5)],
      ["All", "All of the map", () => this.chart.reset()],
    ].map(([text, name, onClick]) => button(text, onClick, { "aria-label": name }));
    const legend = h("div", { class: "row", role: "group", "aria-label": "Themes" }, themes.map((theme, index) => this.#themeButton(index, theme)));
    const stage = h("div", { class: "card stage" }, this.chart.canvas, this.tip, h("div", { class: "row zoom" }, tools));
    this.element = h("div", { class: "map-grid" }, stage, h("div", { class: "stack" }, legend, this.reading));
  }

  #themeButton(index, { words, numDocuments }) {
    const focus = (isOn) => this.chart.focusTheme(isOn ? index : null);
    return highlightButton({ class: `facet ${hue(index)}`, title: wordsOf(words) }, focus, `${nameOf(words)} `, h("span", { class: "number" }, count(numDocuments)));
  }

  /** Documents by id, each fetched once. */
  async #documents(ids) {
    const missing = ids.filter((id) => !this.read.has(id));
    if (missing.length) {
      const { documents = [] } = await call("DocumentService/GetDocuments", { collection: this.collection, ids: missing });
      for (const document of documents) this.read.set(document.id, document);
    }
    return ids.map((id) => this.read.get(id)).filter(Boolean);
  }

  #showTip(point) {
    clearTimeout(this.waiting);
    this.tip.textContent = point ? title(this.read.get(point.key) ?? { id: point.key }) : "";
    if (!point || this.read.has(point.key)) return;
    this.waiting = setTimeout(async () => {
      const [document] = await this.#documents([point.key]).catch(() => []); // the tip shows the id already
      if (document && this.tip.textContent === point.key) this.tip.textContent = title(document);
    }, HOVER_MS);
  }

  async #open(point) {
    const [document] = await this.#documents([point.key]);
    if (!document) return this.reading.replaceChildren(h("p", {}, `${point.key} no longer exists: draw the map again.`));
    const text = new Text(document.text ?? "");
    const part = excerpt(text, null, 500);
    return this.reading.replaceChildren(
      h("h2", {}, title(document)),
      h("div", { class: "passage" }, passage(text, [], part), part.end < text.length ? " \u2026" : ""),
      h("p", { class: `small ${hue(point.hue)}` }, h("span", { class: "swatch" }), nameOf(this.themes[point.hue].words)),
    );
  }

  async #list(points) {
    const shown = points.slice(0, MAX_LISTED);
    const documents = await this.#documents(shown.map((point) => point.key));
    const entry = (document) => {
      const point = points.find(({ key }) => key === document.id);
      return h("div", {}, button([h("span", { class: "swatch" }), title(document)], () => this.chart.choose(point), { class: `quiet ${hue(point.hue)}` }));
    };
    this.reading.replaceChildren(
      h("h2", {}, `${plural(points.length, "document")} visible`),
      ...documents.map(entry),
      points.length > shown.length ? h("p", { class: "hint" }, `The first ${MAX_LISTED} are listed.`) : "",
    );
  }
}

/** The name of a theme, at the median of its documents. */
function label(theme, words, dots) {
  const members = dots.filter((dot) => dot.hue === theme);
  if (!members.length || !words.length) return null;
  const median = (axis) => members.map((dot) => dot[axis]).sort((a, b) => a - b)[Math.floor(members.length / 2)];
  return { x: median("x"), y: median("y"), hue: theme, text: nameOf(words) };
}

function floats(array) {
  return new Float32Array(Uint8Array.from(atob(array.data), (byte) => byte.charCodeAt(0)).buffer);
}
