/** Search hits as cards: the passage with its answer, the matching facets, the confidence. */

import { button, count, decimal, folded, h, highlightButton, hue, meter, percent, plural, table } from "./dom.js";
import { excerpt, glow, marked, span, Text, wordsOf } from "./text.js";

const UNLIKELY = 0.1; // confidence below which a document is an unlikely answer, see docs/use/search.md
const MAX_CHIP_LENGTH = 40;

export function unlikely(hit) {
  return hit.confidence !== undefined && hit.confidence < UNLIKELY;
}

/**
 * Likely hits as a list, unlikely ones folded below it.
 * @param {Object} context Optional functions: `addFilter(name, value)` for a press on a payload value, `note(hit)` for a
 *   remark, `next(hit)` for topics that may follow.
 */
export function hitLists(hits, context) {
  const [likely, others] = [hits.filter((hit) => !unlikely(hit)), hits.filter(unlikely)];
  const nodes = likely.length ? [hitList(likely, context)] : [];
  if (likely.length && others.length) nodes.push(folded(plural(others.length, "less likely document"), hitList(others, context, likely.length)));
  return { nodes, likely };
}

/** Cards of hits, numbered after `before` earlier ones. */
export function hitList(hits, context, before = 0) {
  return h("ol", { class: "hits", start: before + 1 }, hits.map((hit) => hitCard(hit, context)));
}

export function resultCard(heading, beside, ...content) {
  return h("li", { class: "card hit" }, h("div", { class: "row actions" }, h("h2", {}, heading), beside), content);
}

function hitCard(hit, context) {
  const { answer } = hit;
  const text = new Text(hit.text ?? "");
  const passage = h("p", { class: "passage" });
  const evidence = (hit.evidence ?? []).map((match) => ({ ...match, span: span(match.secondSpan) }));
  const marks = hitMarks(hit, evidence);
  const row = answer?.cells?.length > 0 && table(answer.columns, [answer.cells]);
  const draw = (part) => passage.replaceChildren(part.start > 0 ? "\u2026 " : "", ...marked(text, marks, part).flat(), part.end < text.length ? " \u2026" : "");
  const part = excerpt(text, span(answer));
  draw(part);
  passage.hidden = Boolean(row);
  const showAll = (event) => {
    passage.hidden = false;
    draw({ start: 0, end: text.length });
    event.target.remove();
  };
  return resultCard(
    title(hit),
    [context.note?.(hit), confidence(hit)],
    answer?.problem && !text.slice(part.start, part.end).includes(answer.problem) && h("p", { class: "small" }, answer.problem),
    answer?.field && answer.field !== "title" && h("p", { class: "small" }, `${answer.field}: ${answer.text}`),
    row,
    passage,
    (row || part.end - part.start < text.length) && button("Show the whole text", showAll, { class: "link" }),
    evidence.length > 0 && facetMatches(evidence, passage),
    h("div", { class: "row small" }, payloadChips(hit.payload ?? {}, context), context.next && hit.text && nextButton(hit, context), scores(hit)),
  );
}

/** Asks for topics that may follow a text. */
function nextButton(hit, context) {
  const explore = async (event) => {
    event.target.disabled = true;
    const answer = await context.next(hit).catch((error) => ({ error: error.message, topics: [] }));
    const chips = answer.topics.map(({ words, ask }) => button(words, ask, { class: "chip small" }));
    const shown = chips.length ? chips : (answer.error ?? "No other document here continues this topic.");
    event.target.replaceWith(h("span", { class: "row", role: "group", "aria-label": "What may come next" }, shown));
  };
  return button("Explore next", explore, { class: "link" });
}

/** Title of a document, or its id. */
export function title({ id, payload }) {
  return (typeof payload?.title === "string" && payload.title) || id;
}

function hitMarks(hit, evidence) {
  const marks = evidence.flatMap((match, facet) => (match.span ? [{ ...match.span, facet }] : []));
  const answer = span(hit.answer);
  const words = (hit.matchedSpans ?? []).map((word) => ({ ...span(word), kind: "word" }));
  return answer ? [{ ...answer, kind: "answer", whole: true }, ...words, ...marks] : marks;
}

function confidence({ confidence, score }) {
  if (confidence === undefined) return h("span", { class: "small" }, `score ${decimal(score)}`);
  return meter(confidence, `${percent(confidence)} sure`);
}

/** A button for each pair of matching facets, which highlights the document's part of the passage. */
function facetMatches(evidence, passage) {
  const buttons = evidence.map((match, index) => {
    const [first, second] = [match.firstWords, match.secondWords].map((words) => wordsOf(words) || "no words");
    const attributes = { class: `facet ${hue(index)}`, "aria-label": `Matching facets: ${first} \u2192 ${second}; cosine ${decimal(match.cosine)}` };
    return highlightButton(attributes, (isOn) => glow(passage, isOn ? index : null), `${first} \u2192 ${second} `, h("span", { class: "number" }, decimal(match.cosine)));
  });
  return h("div", { class: "row", role: "group", "aria-label": "Matching facets" }, buttons);
}

function payloadChips(payload, { addFilter }) {
  if (!addFilter) return null;
  return Object.entries(payload)
    .filter(([name, value]) => name !== "title" && ["string", "number", "boolean"].includes(typeof value) && String(value).length <= MAX_CHIP_LENGTH)
    .map(([name, value]) => {
      const label = `${name}: ${typeof value === "number" ? count(value) : value}`;
      return button(label, () => addFilter(name, String(value)), { class: "chip small", "aria-label": `${label}, only these documents` });
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
