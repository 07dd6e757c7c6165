/** A map of a collection, laid out by the server: documents by what they are about, coloured by theme. */

import { call } from "../api.js";
import { Chart } from "../chart.js";
import { attend, count, field, h, hue, plural, select } from "../dom.js";
import { title } from "../hits.js";
import { panel } from "../panel.js";
import { collectionField, withoutCollections } from "../served.js";
import { excerpt, Text } from "../text.js";

const SIZES = [["2000", "2,000"], ["10000", "10,000"], ["100000", "100,000"]];
const TIMEOUT_MS = 300_000; // a large collection takes a while
const MOST_LISTED = 40;
const HOVER_MS = 120; // before the name of a point is asked for

/** Fills `root` with the view. */
export async function open(root) {
  const collection = await collectionField();
  if (collection.count === 0) return withoutCollections(root, "Map");
  let atlas = null;
  const view = panel(root, {
    name: "map",
    title: "Map",
    lede: "Documents that are about the same lie together. Colours are themes, named by their nearest words.",
    controls: [h("div", { class: "columns" }, collection.element, field("Documents at most", select("size", SIZES, "10000")))],
    action: "Draw the map",
    examples: collection.hasSamples ? [{ label: "The samples", values: { collection: "samples", size: "10000" } }] : [],
    ask: async (values, signal) => {
      const request = { name: values.collection, maxDocuments: Number(values.size) };
      return call("CollectionService/MapCollection", request, signal, TIMEOUT_MS);
    },
    show: (drawn, values) => {
      atlas?.close();
      atlas = new Atlas(values.collection, drawn);
      return { nodes: atlas.nodes, status: told(drawn) };
    },
  });
  const close = () => {
    atlas?.close();
    view.close();
  };
  return { ...view, close };
}

function told(drawn) {
  const sample = drawn.ids.length < Number(drawn.numDocuments) ? `, a random sample of ${count(drawn.numDocuments)}` : "";
  return `${plural(drawn.ids.length, "document")} drawn${sample}, by ${drawn.method}`;
}

/** The map, its legend, and the documents that are read now. */
class Atlas {
  constructor(collection, { ids, points, documentThemes = [], themes }) {
    this.collection = collection;
    this.names = themes.map((theme) => (theme.words ?? []).map((near) => near.word));
    this.read = new Map(); // id -> document, of those that were asked for
    this.chart = new Chart("Map of the collection. Arrow keys go from document to document, plus and minus zoom, 0 shows all, S chooses an area.");
    this.reading = h("section", { class: "card reading", "aria-live": "polite", "aria-label": "Document" });
    this.reading.append(h("p", { class: "hint" }, "Press a point, or go to the map and use the arrow keys, to read a document. \u201cSelect\u201d and a ring around points lists them."));
    this.tip = h("span", { class: "tip", "aria-hidden": "true" });
    const legend = h("div", { class: "legend-list", role: "group", "aria-label": "Themes" }, themes.map((theme, place) => this.#themeButton(place, theme)));
    this.nodes = [h("div", { class: "map-grid" }, this.#stage(), h("div", { class: "stack" }, legend, this.reading))];
    const places = floats(points);
    const dots = ids.map((id, place) => ({ x: places[2 * place], y: places[2 * place + 1], key: id, hue: documentThemes[place] ?? 0 }));
    this.chart.show(dots);
    this.chart.name(this.names.map((words, theme) => label(theme, words, dots)).filter(Boolean));
    this.chart.addEventListener("choose", (event) => this.#open(event.detail));
    this.chart.addEventListener("hover", (event) => this.#tell(event.detail));
    this.chart.addEventListener("area", (event) => this.#list(event.detail));
  }

  close() {
    clearTimeout(this.waiting);
    this.chart.close();
  }

  #stage() {
    const act = (name, text, press) => h("button", { type: "button", class: "quiet", "aria-label": name, on: { click: press } }, text);
    const area = act("Select an area", "Select", () => this.chart.selectArea());
    this.chart.addEventListener("mode", (event) => area.setAttribute("aria-pressed", String(event.detail)));
    const buttons = h(
      "div",
      { class: "zoom" },
      area,
      act("+ Zoom in", "+", () => this.chart.zoom(1.5)),
      act("\u2212 Zoom out", "\u2212", () => this.chart.zoom(1 / 1.5)),
      act("All of the map", "All", () => this.chart.reset()),
    );
    return h("div", { class: "card stage" }, this.chart.canvas, this.tip, buttons);
  }

  #themeButton(place, theme) {
    const button = h(
      "button",
      { type: "button", class: `facet ${hue(place)}` },
      h("span", { class: "swatch" }),
      h("span", {}, this.names[place].join(", ") || "\u2026"),
      h("span", { class: "number" }, count(theme.numDocuments ?? 0)),
    );
    attend(
      button,
      () => this.chart.focusTheme(place),
      () => this.chart.focusTheme(null),
    );
    return button;
  }

  /** Documents by id; each is asked for once. */
  async #documents(ids) {
    const missing = ids.filter((id) => !this.read.has(id));
    if (missing.length) {
      const found = await call("DocumentService/GetDocuments", { collection: this.collection, ids: missing });
      for (const document of found.documents ?? []) this.read.set(document.id, document);
    }
    return ids.map((id) => this.read.get(id)).filter(Boolean);
  }

  #tell(point) {
    clearTimeout(this.waiting);
    this.tip.textContent = point ? title(this.read.get(point.key) ?? { id: point.key }) : "";
    if (!point || this.read.has(point.key)) return;
    this.waiting = setTimeout(async () => {
      const [document] = await this.#documents([point.key]).catch(() => []); // the id stands there already
      if (document && this.tip.textContent === point.key) this.tip.textContent = title(document);
    }, HOVER_MS);
  }

  async #open(point) {
    const [document] = await this.#documents([point.key]);
    if (!document) return this.reading.replaceChildren(h("p", {}, `${point.key} is gone: draw the map again.`));
    const text = new Text(document.text ?? "");
    const part = excerpt(text, null, 500);
    return this.reading.replaceChildren(
      h("h2", {}, title(document)),
      h("p", { class: "passage" }, text.slice(part.start, part.end), part.end < text.length && " \u2026"),
      h("p", { class: `small ${hue(point.hue)}` }, h("span", { class: "swatch" }), " ", this.names[point.hue].join(", ")),
    );
  }

  /** The documents of an area. */
  async #list(points) {
    const shown = points.slice(0, MOST_LISTED);
    const documents = await this.#documents(shown.map((point) => point.key));
    const entry = (document) => {
      const point = points.find((one) => one.key === document.id);
      const button = h("button", { type: "button", class: `quiet ${hue(point.hue)}`, on: { click: () => this.chart.choose(point) } }, h("span", { class: "swatch" }), " ", title(document));
      return h("li", {}, button);
    };
    this.reading.replaceChildren(
      h("h2", {}, points.length ? plural(points.length, "document") : "No document in this area"),
      h("ul", { class: "plain-list" }, documents.map(entry)),
      points.length > shown.length && h("p", { class: "hint" }, `The first ${MOST_LISTED} are listed.`),
    );
  }
}

/** The name of a theme, in the middle of its documents. */
function label(theme, words, dots) {
  const mine = dots.filter((dot) => dot.hue === theme);
  if (!mine.length || !words.length) return null;
  const middle = (axis) => mine.map((dot) => dot[axis]).sort((a, b) => a - b)[Math.floor(mine.length / 2)];
  return { x: middle("x"), y: middle("y"), hue: theme, text: words.slice(0, 2).join(", ") };
}

/** The numbers of a FacetArray message. */
function floats(array) {
  return new Float32Array(Uint8Array.from(atob(array.data), (byte) => byte.charCodeAt(0)).buffer);
}
