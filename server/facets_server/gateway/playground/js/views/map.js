/** A map of a collection: documents by what they are about, coloured by the theme that most of their facets share. */

import { call } from "../api.js";
import { Chart } from "../chart.js";
import { attend, count, field, h, hue, plural, select } from "../dom.js";
import { panel } from "../panel.js";
import { collectionField, withoutCollections } from "../served.js";
import { excerpt, marked, span, Text } from "../text.js";
import { arrayMessage, closest, clusters, dot, mean, normalized, principalPlane, project, rowsOf } from "../vectors.js";

const PAGE = 50;
const NUM_THEMES = 8;
const SIZES = [["200", "200"], ["500", "500"], ["1000", "1,000"], ["2000", "2,000"]];

/** Fills `root` with the view. */
export async function open(root) {
  const collection = await collectionField();
  if (collection.count === 0) return withoutCollections(root, "Map");
  let atlas = null;
  const view = panel(root, {
    name: "map",
    title: "Map",
    lede: "Documents that are about the same lie together. Colours are themes: groups of facets, named on the map by their nearest words.",
    controls: [
      h(
        "div",
        { class: "columns" },
        collection.element,
        field("Documents at most", select("size", SIZES, "500")),
      ),
    ],
    action: "Draw the map",
    examples: collection.hasSamples ? [{ label: "The samples", values: { collection: "samples", size: "200" } }] : [],
    ask: async (values, signal, progress) => {
      atlas?.close();
      atlas = new Atlas(values.collection);
      await atlas.fill(Number(values.size), signal, progress);
      return atlas;
    },
    show: (drawn) => drawn.told(),
  });
  const close = () => {
    atlas?.close();
    view.close();
  };
  return { ...view, close };
}

/** The documents read so far, their map, its legend and the document that is read now. */
class Atlas {
  constructor(collection) {
    this.collection = collection;
    this.documents = [];
    this.total = 0;
    this.plane = { axes: [] };
    this.fitted = 0;
    this.centers = [];
    this.themes = [];
    this.chart = new Chart("Map of the collection. Arrow keys go from document to document, plus and minus zoom, 0 shows all.");
    this.legend = h("div", { class: "legend-list", role: "group", "aria-label": "Themes" });
    this.reading = h("section", { class: "card reading", "aria-live": "polite", "aria-label": "Document" });
    this.reading.append(h("p", { class: "hint" }, "Press a point, or go to the map and use the arrow keys, to read a document."));
    this.tip = h("span", { class: "tip", "aria-hidden": "true" });
    this.nodes = [h("div", { class: "map-grid" }, this.#stage(), h("div", { class: "stack" }, this.legend, this.reading))];
    this.chart.addEventListener("choose", (event) => this.#read(event.detail.document));
    this.chart.addEventListener("hover", (event) => (this.tip.textContent = event.detail ? titleOf(event.detail.document) : ""));
  }

  close() {
    this.chart.close();
  }

  /** Reads page after page and draws after each. */
  async fill(size, signal, progress) {
    let pageToken = "";
    const counted = await call("DocumentService/CountDocuments", { collection: this.collection }, signal);
    this.total = Number(counted.numDocuments ?? 0);
    do {
      const pageSize = Math.min(PAGE, size - this.documents.length);
      const request = { collection: this.collection, pageSize, pageToken, includeFacets: true };
      const page = await call("DocumentService/ListDocuments", request, signal);
      this.documents.push(...(page.documents ?? []).map(read).filter((document) => document.facets.length));
      pageToken = page.nextPageToken ?? "";
      if (this.documents.length === 0) break;
      this.#draw(!pageToken || this.documents.length >= size);
      progress({ nodes: this.nodes.length ? this.nodes : undefined, status: this.#status() });
    } while (pageToken && this.documents.length < size);
    if (this.documents.length) await this.#name(signal);
  }

  told() {
    if (this.documents.length) return { status: this.#status() };
    const text = "This collection is empty: there is nothing to draw yet.";
    return { nodes: [h("div", { class: "nothing card" }, h("h2", {}, "Empty"), h("p", {}, text))], status: "" };
  }

  #status() {
    const drawn = this.documents.length;
    const part = drawn < this.total ? `, the first of ${count(this.total)} by id` : "";
    return `${plural(drawn, "document")} drawn${part}`;
  }

  #stage() {
    const zoom = (label, text, act) => h("button", { type: "button", class: "quiet", "aria-label": label, on: { click: act } }, text);
    const buttons = h(
      "div",
      { class: "zoom" },
      zoom("Zoom in", "+", () => this.chart.zoom(1.5)),
      zoom("Zoom out", "\u2212", () => this.chart.zoom(1 / 1.5)),
      zoom("Show the whole map", "All", () => this.chart.reset()),
    );
    return h("div", { class: "card stage" }, this.chart.canvas, this.tip, buttons);
  }

  /** Plane and themes are found anew when there are twice as many documents, and at the end; else they stay. */
  #draw(last) {
    if (last || this.documents.length >= 2 * this.fitted) this.#fit();
    this.chart.show(this.documents.map((document) => this.#point(document)));
    this.#list();
  }

  #fit() {
    this.fitted = this.documents.length;
    this.centers = clusters(this.documents.flatMap((document) => document.facets.map((facet) => facet.vector)), NUM_THEMES);
    for (const document of this.documents) this.#assign(document);
    // The plane in which themes differ most, not single documents: so they lie apart.
    const groups = this.centers.map((_, theme) => this.documents.filter((document) => document.theme === theme)).filter((group) => group.length);
    const means = groups.map((group) => mean(group.map((document) => document.vector)));
    this.plane = principalPlane(means.length > 2 ? means : this.documents.map((document) => document.vector), this.plane.axes);
  }

  #assign(document) {
    for (const facet of document.facets) facet.theme = closest(facet.vector, this.centers);
    document.theme = mainTheme(document.facets, this.centers);
  }

  #point(document) {
    this.#assign(document);
    const [x, y] = project(document.vector, this.plane);
    return { x, y: -y, key: document.id, hue: document.theme, themes: new Set(document.facets.map((facet) => facet.theme)), document };
  }

  /** What the themes are about: a search whose queries are their centers says which words are nearest. */
  async #name(signal) {
    const queries = this.centers.map((center) => ({ facetEmbeddings: arrayMessage([center]) }));
    const request = {
      collection: this.collection,
      queries,
      topK: 1,
      mode: "SEARCH_MODE_FACETS",
      evidence: true,
      numWords: 3,
      includeDocument: false,
    };
    const answer = await call("DocumentService/Search", request, signal);
    this.themes = answer.results.map((result) => (result.hits?.[0]?.evidence?.[0]?.firstWords ?? []).map((near) => near.word).join(", "));
    this.#list();
  }

  #list() {
    const sizes = this.centers.map((_, theme) => this.chart.points.filter((point) => point.themes.has(theme)).length);
    const order = [...sizes.keys()].sort((first, second) => sizes[second] - sizes[first]);
    this.chart.name(order.filter((theme) => this.themes[theme]).map((theme) => this.#label(theme)).filter(Boolean));
    this.legend.replaceChildren(...order.map((theme) => this.#themeButton(theme, sizes[theme])));
  }

  /** The name of a theme, in the middle of the documents that are mostly of it. */
  #label(theme) {
    const mine = this.chart.points.filter((point) => point.hue === theme);
    if (!mine.length) return null;
    const middle = (axis) => mine.map((point) => point[axis]).sort((a, b) => a - b)[Math.floor(mine.length / 2)];
    return { x: middle("x"), y: middle("y"), hue: theme, text: this.themes[theme].split(", ").slice(0, 2).join(", ") };
  }

  #themeButton(theme, size) {
    const button = h(
      "button",
      { type: "button", class: `facet ${hue(theme)}` },
      h("span", { class: "swatch" }),
      h("span", {}, this.themes[theme] || "\u2026"),
      h("span", { class: "number" }, count(size)),
    );
    attend(
      button,
      () => this.chart.focusTheme(theme),
      () => this.chart.focusTheme(null),
    );
    return button;
  }

  #read(document) {
    const text = new Text(document.text);
    const marks = document.facets.filter((facet) => facet.span).map((facet) => ({ ...facet.span, kind: `spot ${hue(facet.theme)}` }));
    const themes = [...new Set(document.facets.map((facet) => facet.theme))];
    const part = excerpt(text, null, 500);
    this.reading.replaceChildren(
      h("h2", {}, titleOf(document)),
      h("p", { class: "passage" }, marked(text, marks, part), part.end < text.length && " \u2026"),
      h("ul", { class: "plain-list" }, themes.map((theme) => h("li", { class: hue(theme) }, h("span", { class: "swatch" }), this.themes[theme]))),
    );
  }
}

function read(given) {
  const spans = given.facetSpans ?? [];
  const facets = rowsOf(given.facetEmbeddings).map(({ row, vector }) => ({ vector: normalized(vector), span: span(spans[row]) }));
  const vector = facets.length ? normalized(mean(facets.map((facet) => facet.vector))) : null;
  return { id: given.id, text: given.text ?? "", payload: given.payload ?? {}, facets, vector };
}

function titleOf(document) {
  return typeof document.payload.title === "string" && document.payload.title ? document.payload.title : document.id;
}

/** The theme that most facets have; of several the closest. */
function mainTheme(facets, centers) {
  const weights = new Map();
  for (const facet of facets) {
    weights.set(facet.theme, (weights.get(facet.theme) ?? 0) + 1 + dot(facet.vector, centers[facet.theme]));
  }
  return [...weights].sort((first, second) => second[1] - first[1])[0][0];
}
