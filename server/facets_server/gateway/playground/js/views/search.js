/** Search: which documents answer, how sure that is, which facets met, and where. */

import { call } from "../api.js";
import { attend, count, decimal, field, h, hue, meter, percent, plural, select } from "../dom.js";
import { FilterRows, fieldsOf } from "../filters.js";
import { intro } from "../intro.js";
import { panel } from "../panel.js";
import { collectionField, withoutCollections } from "../served.js";
import { excerpt, glow, marked, span, Text } from "../text.js";

const UNLIKELY = 0.1; // below it a document is taken to hardly answer: see docs/use/search.md
const SAMPLED = 100;
const MODES = [
  ["", "Facets and words"],
  ["SEARCH_MODE_FACETS", "Facets only"],
  ["SEARCH_MODE_LEXICAL", "Words only"],
];
const COMBINATIONS = [
  ["", "Any of its questions"],
  ["FACET_COMBINATION_SUM", "All of its parts"],
  ["FACET_COMBINATION_ANY", "Any of its parts"],
];
const EXAMPLES = [
  { label: "games played with a ball", values: { query: "games played with a ball" } },
  { label: "how vaccines protect against disease", values: { query: "how vaccines protect against disease" } },
  { label: "two questions in one", values: { query: "How do vaccines work? Which insects make honey?" } },
  { label: "nothing here answers this", values: { query: "renew a parking permit" } },
];

/** Fills `root` with the view. */
export async function open(root) {
  const collection = await collectionField();
  if (collection.count === 0) return withoutCollections(root, "Search");
  const filters = new FilterRows();
  const query = h("input", { name: "query", type: "search", required: true, autocomplete: "off" });
  const view = panel(root, {
    name: "search",
    title: "Search",
    lede: "Ask in your own words. Each answer shows the passage, the facets that met and how sure the server is.",
    controls: [
      h("div", { class: "ask" }, field("Question", query), h("button", { type: "submit", class: "primary" }, "Search")),
      h(
        "div",
        { class: "columns" },
        collection.element,
        field("Ranked by", select("mode", MODES)),
        field("An answer meets", select("combine", COMBINATIONS)),
        field("Answers", select("top_k", [["5", "5"], ["10", "10"], ["20", "20"], ["50", "50"]], "10")),
      ),
      filters.element,
    ],
    examples: collection.hasSamples ? EXAMPLES : [],
    before: intro,
    ask: (values, signal) => call("DocumentService/Search", request(values, filters), signal),
    show: (answer, values) => show(answer, { values, addFilter }),
  });
  const learn = () => learnFields(collection.control.value, filters);
  collection.control.addEventListener("change", learn);
  collection.control.addEventListener("filled", learn);

  function addFilter(name, value) {
    filters.add({ field: name, value });
    view.run();
  }
  await learn();
  return view;
}

/** Offers the fields that some of the documents have. */
async function learnFields(collection, filters) {
  if (!collection) return;
  try {
    const page = await call("DocumentService/ListDocuments", { collection, pageSize: SAMPLED });
    filters.fields = fieldsOf((page.documents ?? []).map((document) => document.payload));
  } catch {
    filters.fields = new Map(); // only suggestions are lost; the search itself says what is wrong
  }
}

function request(values, filters) {
  return {
    collection: values.collection,
    queries: [{ text: values.query }],
    topK: Number(values.top_k),
    mode: values.mode || undefined,
    combine: values.combine || undefined,
    filter: filters.message(),
    evidence: true,
    numWords: 4,
  };
}

function show(answer, context) {
  const hits = answer.results?.[0]?.hits ?? [];
  const surely = hits.filter((hit) => !unlikely(hit));
  const hardly = hits.filter(unlikely);
  const how = `${answer.exhaustive ? "every document compared" : "index"} (${answer.indexKind}), ${timing(answer)}`;
  if (hits.length === 0) return { nodes: [nothing("No document matches these filters and words.", [])], status: how };
  if (surely.length === 0) {
    const text = "Nothing here seems to answer this.";
    return { nodes: [nothing(text, hitList(hardly, context, 0))], status: `Nothing relevant; ${how}` };
  }
  const nodes = [hitList(surely, context, 0)];
  if (hardly.length) nodes.push(folded(`${plural(hardly.length, "less likely document")}`, hitList(hardly, context, surely.length)));
  return { nodes, status: `${plural(surely.length, "answer")}; ${how}` };
}

function unlikely(hit) {
  return hit.confidence !== undefined && hit.confidence < UNLIKELY;
}

function timing(answer) {
  return `${decimal(answer.timings?.totalMs ?? 0, 0)} ms`;
}

function nothing(sentence, list) {
  return h(
    "div",
    { class: "nothing card" },
    h("h2", {}, "Nothing relevant"),
    h("p", {}, sentence, " Ask in other words, choose another collection, or remove a filter."),
    list.length !== 0 && folded("Show the closest documents anyway", list),
  );
}

function folded(summary, content) {
  return h("details", { class: "folded" }, h("summary", {}, summary), content);
}

function hitList(hits, context, before) {
  return h("ol", { class: "hits", start: before + 1 }, hits.map((hit) => hitCard(hit, context)));
}

function hitCard(hit, context) {
  const text = new Text(hit.text ?? "");
  const passage = h("p", { class: "passage" });
  const evidence = (hit.evidence ?? []).map((match) => ({ ...match, span: span(match.secondSpan) }));
  const marks = hitMarks(hit, evidence);
  const draw = (part) => passage.replaceChildren(...ellipses(text, part, marked(text, marks, part)));
  const part = excerpt(text, span(hit.answer));
  draw(part);
  const more = part.end - part.start < text.length && moreButton(() => draw({ start: 0, end: text.length }));
  return h(
    "li",
    { class: "card hit" },
    h("div", { class: "hit-head" }, h("h2", {}, title(hit)), sureness(hit)),
    fieldMet(hit),
    passage,
    more,
    evidence.length > 0 && facetsMet(evidence, passage),
    h("div", { class: "row small" }, payloadChips(hit.payload ?? {}, context), scores(hit)),
  );
}

function title(hit) {
  return typeof hit.payload?.title === "string" && hit.payload.title ? hit.payload.title : hit.id;
}

/** What a field says that met the query where the text did not; the title is there already. */
function fieldMet({ answer }) {
  return answer?.field && answer.field !== "title" && h("p", { class: "small" }, `${answer.field}: ${answer.text}`);
}

function hitMarks(hit, evidence) {
  const marks = [];
  const answer = span(hit.answer);
  if (answer) marks.push({ ...answer, kind: "answer", whole: true });
  for (const given of answer ? (hit.matchedSpans ?? []) : []) marks.push({ ...span(given), kind: "word" });
  evidence.forEach((match, place) => match.span && marks.push({ ...match.span, facet: place }));
  return marks;
}

function ellipses(text, part, nodes) {
  return [part.start > 0 ? "\u2026 " : "", ...nodes.flat(), part.end < text.length ? " \u2026" : ""];
}

function moreButton(showAll) {
  const button = h("button", { type: "button", class: "link" }, "Show the whole text");
  button.addEventListener("click", () => {
    showAll();
    button.remove();
  });
  return button;
}

function sureness(hit) {
  if (hit.confidence === undefined) return h("span", { class: "small" }, `score ${decimal(hit.score)}`);
  return meter(hit.confidence, `${percent(hit.confidence)} sure`);
}

/** One button for each pair of facets that met: it lights up the part of the passage where the document's stands. */
function facetsMet(evidence, passage) {
  const buttons = evidence.map((match, place) => {
    const label = `${words(match.firstWords)} \u2192 ${words(match.secondWords)}`;
    const told = `Facets that met: ${label}; cosine ${decimal(match.cosine)}`;
    const button = h(
      "button",
      { type: "button", class: `facet ${hue(place)}`, "aria-label": told },
      h("span", { class: "swatch" }),
      h("span", {}, words(match.firstWords)),
      h("span", { class: "arrow" }, "\u2192"),
      h("span", {}, words(match.secondWords)),
      h("span", { class: "number" }, decimal(match.cosine)),
    );
    attend(button, () => glow(passage, place), () => glow(passage, null));
    return button;
  });
  return h("div", { class: "met", role: "group", "aria-label": "Facets that met" }, buttons);
}

function words(nearest) {
  return (nearest ?? []).slice(0, 3).map((near) => near.word).join(", ") || "no words";
}

function payloadChips(payload, { addFilter }) {
  return Object.entries(payload)
    .filter(([name, value]) => name !== "title" && ["string", "number", "boolean"].includes(typeof value))
    .filter(([, value]) => String(value).length <= 40)
    .map(([name, value]) =>
      h(
        "button",
        {
          type: "button",
          class: "chip small",
          "aria-label": `Only documents whose ${name} is ${value}`,
          on: { click: () => addFilter(name, String(value)) },
        },
        `${name}: ${typeof value === "number" ? count(value) : value}`,
      ),
    );
}

function scores(hit) {
  const parts = [`facets ${decimal(hit.facetsScore)}`, `words ${decimal(hit.lexicalScore, 1)}`];
  if (hit.matchedWords?.length) parts.push(`matched: ${hit.matchedWords.join(", ")}`);
  return h("span", { class: "scores" }, parts.join(" \u00b7 "));
}
