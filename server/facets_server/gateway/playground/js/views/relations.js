/** Relations between the entities of a text, drawn as arrows between its words. */

import { call } from "../api.js";
import { card, decimal, enumLabel, field, folded, h, highlightButton, hue, meter, nothing, percent, plural, svg } from "../dom.js";
import { panel } from "../panel.js";
import { Text } from "../text.js";

const FIRST_RISE = 24; // pixels between the words and the lowest arrows
const NEXT_RISE = 26; // pixels between levels of arrows
const LABEL_WIDTH = 110; // largest width of most relation names, in pixels
const EXAMPLES = [
  ["Marie Curie", "Marie Curie was born in Warsaw and married Pierre Curie, who died in Paris. Warsaw is the capital of Poland."],
  [
    "Said, denied, asked",
    "Franz Kafka was born in Prague. Ludwig Wittgenstein was not born in Berlin. Was Freddie Mercury born in Zanzibar? The capital of Norway is Oslo.",
  ],
].map(([label, text]) => ({ label, values: { text } }));

export async function open(root) {
  return panel(root, {
    lede: "What sentences assert about the people, places and works they name. Arrows point from the head of a relation to its tail.",
    controls: [field("Text", h("textarea", { name: "text", rows: 4, required: true }), "One or more sentences in English.")],
    action: "Find relations",
    examples: EXAMPLES,
    ask: ({ text }, signal) => call("RelationService/ExtractRelations", { texts: [{ text }], evidence: true, includeUnrelated: true }, signal),
    show: (answer, values) => show(answer.texts[0], values.text),
  });
}

function show({ pairs = [], entities = [] }, string) {
  const accepted = ({ patternScore }) => (patternScore?.relations ?? []).filter((relation) => relation.accepted);
  const relations = pairs.flatMap((pair) => accepted(pair).map((relation) => ({ pair, relation })));
  const sentences = textSentences(new Text(string), entities, pairs);
  const stage = h("section", { class: "card stack sentences", "aria-label": "The text", tabindex: 0 }, sentences.map(({ element }) => element));
  queueMicrotask(() => sentences.forEach((sentence) => drawArrows(sentence, relations))); // once they have a place on the page
  const focus = (index, isOn) => {
    stage.classList.toggle("focused", isOn);
    for (const arrow of stage.querySelectorAll(".arrow")) arrow.classList.toggle("chosen", isOn && Number(arrow.dataset.relation) === index);
  };
  const reason = entities.length < 2 ? "The text names fewer than two entities." : "The text asserts no relation that the model knows.";
  const rows = relations.map((found, index) => relationRow(found, index, (isOn) => focus(index, isOn)));
  return {
    nodes: [stage, rows.length ? h("div", { class: "card" }, h("ol", { class: "matches" }, rows)) : nothing("No relation", h("p", {}, reason)), ...notAsserted(pairs)],
    status: `${plural(relations.length, "relation")} between ${plural(entities.length, "entity", "entities")}`,
  };
}

/** The sentences that have pairs, and the texts between them, each on one line with its marked entities by their start. */
function textSentences(text, entities, pairs) {
  const starts = [...new Set([0, ...pairs.map((pair) => pair.sentenceStart ?? 0)])].sort((first, second) => first - second);
  return starts.map((start, index) => {
    const end = starts[index + 1] ?? text.length;
    const mentions = new Map();
    let position = start;
    const words = entities.filter((entity) => (entity.start ?? 0) >= start && entity.end <= end).map((entity) => {
      const element = h("span", { class: "entity", title: enumLabel(entity.type, "ENTITY_TYPE_") || null }, text.slice(entity.start ?? 0, entity.end));
      const before = text.slice(position, entity.start ?? 0);
      mentions.set(entity.start ?? 0, element);
      position = entity.end;
      return [before, element];
    });
    const arrows = svg("svg", { class: "arrows", "aria-hidden": "true" });
    return { mentions, arrows, element: h("div", { class: "sentence-line" }, arrows, h("p", { class: "passage" }, words, text.slice(position, end))) };
  });
}

/** Draws the arrows of a sentence above its words, long ones above short ones. */
function drawArrows({ mentions, arrows }, relations) {
  const middle = (element) => element.offsetLeft + element.offsetWidth / 2;
  const drawn = relations
    .map(({ pair, relation }, index) => ({ ends: [pair.head, pair.tail].map(({ start = 0 }) => mentions.get(start)), label: relation.relation, index }))
    .filter(({ ends }) => ends.every(Boolean))
    .map((arrow) => placed(arrow, ...arrow.ends.map(middle)))
    .sort((first, second) => first.length - second.length);
  drawn.forEach((arrow, number) => {
    const below = drawn.slice(0, number).filter((other) => Math.abs(arrow.centre - other.centre) < (arrow.reach + other.reach) / 2);
    arrow.level = 1 + Math.max(-1, ...below.map((other) => other.level));
  });
  const height = drawn.length && FIRST_RISE + NEXT_RISE * (1 + Math.max(...drawn.map(({ level }) => level)));
  arrows.style.height = `${height}px`;
  arrows.replaceChildren(...drawn.map((arrow) => arrowNode(arrow, height)));
}

function placed(arrow, head, tail) {
  const length = Math.abs(head - tail);
  return { ...arrow, ends: [head, tail], length, centre: (head + tail) / 2, reach: Math.max(length, LABEL_WIDTH) };
}

/** An arrow: up from the head, along, and down to the tail; its label is on the line. */
function arrowNode({ ends: [head, tail], label, index, level }, bottom) {
  const side = Math.sign(tail - head); // keeps outgoing and incoming arrows apart
  const [x1, x2] = [head + 7 * side, tail - 7 * side];
  const top = bottom - FIRST_RISE - NEXT_RISE * level;
  const path = `M${x1} ${bottom} V${top + 10} Q${x1} ${top} ${x1 + 10 * side} ${top} H${x2 - 10 * side} Q${x2} ${top} ${x2} ${top + 10} V${bottom - 7}`;
  return svg(
    "g",
    { class: `arrow ${hue(index)}`, "data-relation": index },
    svg("path", { class: "arc", d: path }),
    svg("path", { class: "arrow-head", d: `M${x2} ${bottom} l-5 -9 h10 z` }),
    svg("text", { class: "arc-label", x: (x1 + x2) / 2, y: top + 4, "text-anchor": "middle" }, label),
  );
}

function relationRow({ pair, relation }, index, focus) {
  const line = highlightButton(
    { class: `facet ${hue(index)}` },
    focus,
    h("strong", {}, pair.head.text),
    h("span", { class: "relation-name" }, ` ${relation.relation} \u2192 `),
    h("strong", {}, pair.tail.text),
  );
  return h("li", { class: "relation" }, line, meter(relation.probability, `${percent(relation.probability)} sure`), evidence(pair, relation));
}

function evidence(pair, { score, similarPatterns = [], knownPairs = [] }) {
  const patterns = similarPatterns.map((similar) => h("li", {}, h("code", {}, similar.pattern), ` ${decimal(similar.score)}`));
  const known = knownPairs.map(({ head, tail }) => h("li", {}, `${head}, ${tail}`));
  const lists = [["Similar patterns", patterns], ["Known pairs", known]].filter(([, items]) => items.length);
  return folded(
    "Why",
    h("p", {}, "Read as ", h("code", {}, pair.patternScore.pattern), `, score ${decimal(score)}.`),
    h("div", { class: "columns" }, lists.map(([heading, items]) => h("div", {}, h("h3", {}, heading), h("ul", {}, items)))),
  );
}

/** Pairs that the text mentions without asserting a relation, each once. */
function notAsserted(pairs) {
  const items = new Map();
  for (const { head, tail, patternScore } of pairs) {
    const key = [head.start ?? 0, tail.start ?? 0].sort((first, second) => first - second).join("-");
    const cue = patternScore.assertionCue ? ` (\u201c${patternScore.assertionCue}\u201d)` : "";
    const status = enumLabel(patternScore.assertion, "ASSERTION_STATUS_");
    if (!items.has(key)) items.set(key, status !== "asserted" && h("li", {}, `${head.text}, ${tail.text}: ${status}${cue}`));
  }
  const shown = [...items.values()].filter(Boolean);
  return shown.length ? [card("Mentioned, but not asserted", h("ul", {}, shown))] : [];
}
