/** Relations between the entities of a text, drawn as arrows between its words. */

import { call } from "../api.js";
import { card, decimal, enumLabel, field, folded, h, highlightButton, hue, meter, nothing, percent, plural, svg } from "../dom.js";
import { panel } from "../panel.js";
import { Text } from "../text.js";

const FIRST_RISE = 34; // pixels between the words and the lowest arrows
const NEXT_RISE = 26; // pixels between levels of arrows
const LABEL_WIDTH = 110; // largest width of most relation names, in pixels
const EXAMPLES = [
  {
    label: "Marie Curie",
    values: { text: "Marie Curie was born in Warsaw and married Pierre Curie, who died in Paris. Warsaw is the capital of Poland." },
  },
  {
    label: "Said, denied, asked",
    values: {
      text:
        "Franz Kafka was born in Prague. Ludwig Wittgenstein was not born in Berlin. " +
        "Was Freddie Mercury born in Zanzibar? The capital of Norway is Oslo.",
    },
  },
  {
    label: "Books and films",
    values: { text: "Leo Tolstoy wrote War and Peace. Blade Runner was directed by Ridley Scott. Monet died in Giverny in 1926." },
  },
];

/** Fills `root` with the view. */
export async function open(root) {
  return panel(root, {
    name: "relations",
    title: "Relations",
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
  const arcs = svg("svg", { class: "arcs", "aria-hidden": "true" });
  const { lines, mentions } = textLines(new Text(string), entities, new Set(pairs.map((pair) => pair.sentenceStart ?? 0)));
  const stage = h("section", { class: "card sentence-stage", "aria-label": "The text" }, arcs, lines);
  const focus = (index) => {
    stage.classList.toggle("focused", index !== null);
    for (const element of arcs.children) element.classList.toggle("chosen", index !== null && Number(element.dataset.relation) === index);
  };
  const reason = entities.length < 2 ? "The text names fewer than two entities." : "The text asserts no relation that the model knows.";
  const list = relations.length ? h("ol", { class: "card rows" }, relations.map((found, index) => relationRow(found, index, focus))) : nothing("No relation", h("p", {}, reason));
  return {
    nodes: [stage, list, ...notAsserted(pairs)],
    status: `${plural(relations.length, "relation")} between ${plural(entities.length, "entity", "entities")}`,
    redraw: () => drawArcs(arcs, stage, relations, mentions),
    stage,
  };
}

/** The text with marked entities; each sentence is a paragraph, so that few arrows cross. Mentions by their start. */
function textLines(text, entities, sentenceStarts) {
  const mentions = new Map();
  const lines = [h("p", { class: "passage large" })];
  let position = 0;
  const append = (end) => {
    for (const start of [...sentenceStarts].filter((start) => start > position && start <= end).sort((a, b) => a - b)) {
      lines.at(-1).append(text.slice(position, start));
      lines.push(h("p", { class: "passage large" }));
      position = start;
    }
    lines.at(-1).append(text.slice(position, end));
    position = end;
  };
  for (const { start = 0, end, type } of entities) {
    append(start);
    const element = h("span", { class: "entity", title: enumLabel(type, "ENTITY_TYPE_") || null }, text.slice(start, end));
    mentions.set(start, element);
    lines.at(-1).append(element);
    position = end;
  }
  append(text.length);
  return { lines, mentions };
}

/** Draws arrows above the words; long ones above short ones. Each line makes room for its arrows. */
function drawArcs(arcs, stage, relations, mentions) {
  const arrows = relations
    .map(({ pair, relation }, index) => ({ from: mentions.get(pair.head.start ?? 0), to: mentions.get(pair.tail.start ?? 0), label: relation.relation, index }))
    .filter(({ from, to }) => from && to);
  const levels = levelsOf(arrows.map(({ from, to }) => reach(from, to)));
  for (const line of stage.querySelectorAll("p")) {
    const lineLevels = levels.filter((_, number) => lower(arrows[number].from, arrows[number].to).parentElement === line);
    line.style.setProperty("--rise", lineLevels.length ? `${FIRST_RISE + NEXT_RISE * Math.max(...lineLevels)}px` : "0px");
  }
  const frame = stage.getBoundingClientRect();
  arcs.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  const drawn = arrows.map((arrow, number) => arc({ ...arrow, frame, rise: FIRST_RISE + NEXT_RISE * levels[number] - 12 }));
  arcs.replaceChildren(...drawn.flatMap(({ lines }) => lines), ...drawn.map(({ label }) => label));
}

/** The lower of two mentions; arrows use the room above it. */
function lower(from, to) {
  return from.getBoundingClientRect().top > to.getBoundingClientRect().top ? from : to;
}

/** The text line that an arrow or its label rises above, and its horizontal extent. */
function reach(from, to) {
  const boxes = [from, to].map((element) => element.getBoundingClientRect());
  const middles = boxes.map((box) => box.left + box.width / 2);
  const [line, other] = boxes.map((box) => Math.round(box.top));
  if (line === other) return { line, left: Math.min(...middles), right: Math.max(...middles) };
  const middle = middles[line > other ? 0 : 1];
  return { line: Math.max(line, other), left: middle, right: middle + LABEL_WIDTH };
}

/** For each arrow, the lowest level at which it crosses no shorter arrow. */
function levelsOf(reaches) {
  const levels = reaches.map(() => 0);
  const order = [...reaches.keys()].sort((a, b) => reaches[a].right - reaches[a].left - (reaches[b].right - reaches[b].left));
  order.forEach((index, position) => {
    const below = order.slice(0, position).filter((other) => overlap(reaches[index], reaches[other]));
    levels[index] = below.length ? 1 + Math.max(...below.map((other) => levels[other])) : 0;
  });
  return levels;
}

function overlap(first, second) {
  return first.line === second.line && first.left < second.right && second.left < first.right;
}

function arc({ from, to, frame, index, label, rise }) {
  const [head, tail] = [from, to].map((element) => within(element.getBoundingClientRect(), frame));
  const { path, tip, at, anchor } = head.line === tail.line ? above(head, tail, rise) : across(head, tail, rise);
  const data = { "data-relation": index };
  return {
    lines: [
      svg("path", { class: `arc ${hue(index)}`, d: path, ...data }),
      svg("path", { class: `arrow-head ${hue(index)}`, d: tip, ...data }),
    ],
    label: svg("text", { class: `arc-label ${hue(index)}`, x: at[0], y: at[1] + 4, "text-anchor": anchor, ...data }, label),
  };
}

function within(box, frame) {
  const [top, bottom] = [box.top - frame.top - 1, box.bottom - frame.top + 1];
  return { middle: box.left + box.width / 2 - frame.left, top, bottom, line: Math.round(box.top) };
}

/** An arrow within one text line: up from the head, along, and down to the tail. */
function above(head, tail, rise) {
  const side = head.middle <= tail.middle ? 1 : -1; // keeps outgoing and incoming arrows apart
  const [x1, x2] = [head.middle + 7 * side, tail.middle - 7 * side];
  const top = head.top - rise;
  const bend = Math.min(14, Math.abs(x2 - x1) / 2) * Math.sign(x2 - x1);
  const path =
    `M${x1} ${head.top} V${top + 10} Q${x1} ${top} ${x1 + bend} ${top} ` +
    `H${x2 - bend} Q${x2} ${top} ${x2} ${top + 10} V${tail.top - 7}`;
  return { path, tip: `M${x2} ${tail.top} l-5 -9 h10 z`, at: [(x1 + x2) / 2, top], anchor: "middle" };
}

/** An arrow between lines, to the right of the words between them; the label is above the lower line. */
function across(head, tail, rise) {
  const down = head.line < tail.line;
  const [y1, y2] = down ? [head.bottom, tail.top] : [head.top, tail.bottom];
  const turn = down ? 1 : -1;
  const far = Math.max(head.middle, tail.middle) + Math.min(90, Math.abs(y2 - y1) / 2);
  const path = `M${head.middle} ${y1} C${far} ${y1 + 12 * turn} ${far} ${y2 - 20 * turn} ${tail.middle} ${y2 - 7 * turn}`;
  const tip = `M${tail.middle} ${y2} l-5 ${-9 * turn} h10 z`;
  const below = down ? tail : head;
  return { path, tip, at: [below.middle + 12, below.top - rise], anchor: "start" };
}

function relationRow({ pair, relation }, index, focus) {
  const line = highlightButton(
    { class: `match ${hue(index)}` },
    { enter: () => focus(index), leave: () => focus(null) },
    h("strong", {}, pair.head.text),
    h("span", { class: "relation-name" }, `${relation.relation} \u2192`),
    h("strong", {}, pair.tail.text),
  );
  const probability = relation.probability ?? 0;
  return h("li", { class: "relation" }, line, meter(probability, `${percent(probability)} sure`), evidence(pair, relation));
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
