/** Hits as cards: the passage with what answers, the facets that met, how sure it is. */

import { attend, count, decimal, h, hue, meter, percent } from "./dom.js";
import { excerpt, glow, marked, span, Text } from "./text.js";

const UNLIKELY = 0.1; // below it a document is taken to hardly answer: see docs/use/search.md

/** Whether a hit hardly answers. */
export function unlikely(hit) {
  return hit.confidence !== undefined && hit.confidence < UNLIKELY;
}

/** Content behind a line that opens it. */
export function folded(summary, content) {
  return h("details", { class: "folded" }, h("summary", {}, summary), content);
}

/**
 * Cards of hits; `context.addFilter` is called with what a press on a payload means, `note` says more of a hit, and
 * `next` gives what a text may lead to: words, and what a press on them does.
 */
export function hitList(hits, context, before) {
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
    h("div", { class: "hit-head" }, h("h2", {}, title(hit)), context.note?.(hit), sureness(hit)),
    fieldMet(hit),
    passage,
    more,
    evidence.length > 0 && facetsMet(evidence, passage),
    h("div", { class: "row small" }, payloadChips(hit.payload ?? {}, context), context.next && hit.text && nextButton(hit, context), scores(hit)),
  );
}

/** What may come after a text, asked for when it is wanted. */
function nextButton(hit, context) {
  const button = h("button", { type: "button", class: "link" }, "Explore next");
  button.addEventListener("click", async () => {
    button.disabled = true;
    const found = await context.next(hit).catch((error) => ({ why: error.message, topics: [] }));
    const chips = found.topics.map(({ words, ask }) => h("button", { type: "button", class: "chip small", on: { click: ask } }, words));
    button.replaceWith(h("span", { class: "row", role: "group", "aria-label": "What may come next" }, chips.length ? chips : (found.why ?? "No other document here goes on from it.")));
  });
  return button;
}

/** What a document is called. */
export function title(hit) {
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
  if (!addFilter) return null;
  return Object.entries(payload)
    .filter(([name, value]) => name !== "title" && ["string", "number", "boolean"].includes(typeof value))
    .filter(([, value]) => String(value).length <= 40)
    .map(([name, value]) =>
      h(
        "button",
        {
          type: "button",
          class: "chip small",
          "aria-label": `${name}: ${typeof value === "number" ? count(value) : value}, only these documents`,
          on: { click: () => addFilter(name, String(value)) },
        },
        `${name}: ${typeof value === "number" ? count(value) : value}`,
      ),
    );
}

function scores(hit) {
  const parts = [hit.facetsScore && `facets ${decimal(hit.facetsScore)}`, hit.lexicalScore && `words ${decimal(hit.lexicalScore, 1)}`].filter(Boolean);
  if (hit.matchedWords?.length) parts.push(`matched: ${hit.matchedWords.join(", ")}`);
  return h("span", { class: "scores" }, parts.join(" \u00b7 "));
}
