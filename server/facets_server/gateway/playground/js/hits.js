/** Search hits as cards: the answer in its context, where it stands, and why it was found. */

import { button, count, decimal, folded, h, highlightButton, hue, meter, percent, table } from "./dom.js";
import { excerpt, glow, pairName, passage, span, Text, wordsOf } from "./text.js";

const UNLIKELY = 0.1; // confidence below which a document is an unlikely answer, see docs/use/search.md
const MAX_CHIP_LENGTH = 40;

export function isUnlikely({ confidence }) {
  return confidence !== undefined && confidence < UNLIKELY;
}

/** Cards of hits, numbered after `before` earlier ones. A press on a field calls `addFilter(name, value)`. */
export function hitList(hits, addFilter, before = 0) {
  return h("ol", { class: "hits", start: before + 1 }, hits.map((hit) => hitCard(hit, addFilter)));
}

export function resultCard(heading, beside, ...content) {
  return h("li", { class: "card hit" }, h("div", { class: "row actions" }, h("h2", {}, heading), beside), content);
}

function hitCard(hit, addFilter) {
  const { answer } = hit;
  const text = new Text(hit.text ?? "");
  const shown = h("div", { class: "passage" });
  const evidence = (hit.evidence ?? []).map((match) => ({ ...match, span: span(match.secondSpan) }));
  const marks = hitMarks(hit, evidence);
  const row = answer?.cells?.length > 0 && table(answer.columns, [answer.cells]);
  const draw = (part) => shown.replaceChildren(part.start > 0 ? "\u2026 " : "", ...passage(text, marks, part), part.end < text.length ? " \u2026" : "");
  const part = excerpt(text, span(answer));
  draw(part);
  shown.hidden = Boolean(row);
  const showAll = (event) => {
    shown.hidden = false;
    draw({ start: 0, end: text.length });
    event.target.remove();
  };
  return resultCard(
    title(hit),
    confidence(hit),
    h("p", { class: "small" }, placeOf(hit)),
    answer?.problem && !text.slice(part.start, part.end).includes(answer.problem) && h("p", { class: "small" }, answer.problem),
    answer?.field && answer.field !== "title" && h("p", { class: "passage" }, h("span", { class: "small" }, `${answer.field}: `), h("mark", { class: "answer" }, answer.text)),
    row,
    shown,
    h(
      "div",
      { class: "row" },
      facetMatches(evidence, shown),
      (row || part.end - part.start < text.length) && button("Show the whole text", showAll, { class: "link" }),
    ),
    folded("Why this answer", h("div", { class: "row small" }, payloadChips(hit.payload ?? {}, addFilter), scores(hit))),
  );
}

/** Title of a document, or its id. */
export function title({ id, payload }) {
  return (typeof payload?.title === "string" && payload.title) || id;
}

/** Where a document, or the part of it that was found, stands: its id, which names the file, then headings and page. */
export function placeOf({ id, payload, part }) {
  const page = part?.page || payload?.page;
  const file = page ? id.replace(/#\d+$/, "") : id;
  const place = [file, ...(part?.headings ?? []), page && `page ${page}`].filter(Boolean);
  const plain = (name) => name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ");
  return place.filter((name) => plain(name) !== plain(title({ id, payload }))).join(" \u203a ");
}

function hitMarks(hit, evidence) {
  const marks = evidence.flatMap((match, facet) => (match.span ? [{ ...match.span, facets: [facet] }] : []));
  const answer = span(hit.answer);
  const words = (hit.matchedSpans ?? []).map((word) => ({ ...span(word), kind: "word" }));
  return answer ? [{ ...answer, kind: "answer", whole: true }, ...words, ...marks] : marks;
}

function confidence({ confidence, score }) {
  if (confidence === undefined) return h("span", { class: "small" }, `score ${decimal(score)}`);
  return meter(confidence, `${percent(confidence)} sure`);
}

/** A button for each pair of matching facets, which highlights the document's part of the passage. */
function facetMatches(evidence, shown) {
  const buttons = evidence.map((match, index) => {
    const [first, second] = [match.firstWords, match.secondWords].map((words) => wordsOf(words, 4));
    const attributes = { class: `facet ${hue(index)}`, title: `${first} \u2192 ${second}; cosine ${decimal(match.cosine)}` };
    return highlightButton(attributes, (isOn) => glow(shown, isOn ? index : null), pairName(match.firstWords, match.secondWords));
  });
  return buttons.length > 0 && h("div", { class: "row", role: "group", "aria-label": "Matching facets" }, buttons);
}

function payloadChips(payload, addFilter) {
  return Object.entries(payload)
    .filter(([name, value]) => name !== "title" && ["string", "number", "boolean"].includes(typeof value) && String(value).length <= MAX_CHIP_LENGTH)
    .map(([name, value]) => {
      const label = `${name}: ${typeof value === "number" ? count(value) : value}`;
      return button(label, () => addFilter(name, value), { class: "chip small", "aria-label": `${label}, only these documents` });
    });
}

function scores({ facetsScore, lexicalScore, matchedWords = [] }) {
  const parts = [
    facetsScore && `facets ${decimal(facetsScore)}`,
    lexicalScore && `words ${decimal(lexicalScore, 1)}`,
    matchedWords.length > 0 && `matched: ${matchedWords.join(", ")}`,
  ];
  return h("span", { class: "scores" }, parts.filter(Boolean).join(" \u00b7 "));
}
