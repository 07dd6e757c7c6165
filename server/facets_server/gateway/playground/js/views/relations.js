/** Relations between the entities of a text, drawn into its sentences. */

import { call } from "../api.js";
import { attend, decimal, field, h, hue, meter, percent, plural, svg } from "../dom.js";
import { panel } from "../panel.js";
import { Text } from "../text.js";

const FIRST_RISE = 34; // pixels that the lowest arrows need above the words
const NEXT_RISE = 26; // pixels more for every level above
const LABEL_WIDTH = 110; // pixels that the name of a relation takes, at most of them
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
  let redraw = () => {};
  const resized = new ResizeObserver(() => redraw());
  const view = panel(root, {
    name: "relations",
    title: "Relations",
    lede: "What sentences assert of the people, places and works they name. Arrows run from the head of a relation to its tail.",
    controls: [field("Text", h("textarea", { name: "text", rows: 4, required: true }), "One or more sentences in English.")],
    action: "Find relations",
    examples: EXAMPLES,
    ask: (values, signal) =>
      call(
        "RelationService/ExtractRelations",
        { texts: [{ text: values.text }], evidence: true, includeUnrelated: true },
        signal,
      ),
    show: (answer, values) => {
      const drawn = show(answer.texts[0], values.text);
      redraw = drawn.redraw;
      resized.disconnect();
      resized.observe(drawn.stage);
      return drawn;
    },
  });
  const close = () => {
    resized.disconnect();
    view.close();
  };
  return { ...view, close };
}

function show(found, string) {
  const pairs = found.pairs ?? [];
  const relations = pairs.flatMap((pair) =>
    (pair.patternScore?.relations ?? []).filter((relation) => relation.accepted).map((relation) => ({ pair, relation })),
  );
  const { stage, mentions } = sentence(string, found.entities ?? [], breaksOf(pairs));
  const arcs = svg("svg", { class: "arcs", "aria-hidden": "true" });
  stage.prepend(arcs);
  const redraw = () => drawArcs(arcs, stage, relations, mentions);
  stage.addEventListener("shown", redraw);
  const unsaid = notAsserted(pairs);
  const nodes = [stage];
  nodes.push(relations.length ? h("ol", { class: "card rows" }, relations.map((one, place) => row(one, place, stage))) : none(found));
  if (unsaid.length) nodes.push(unsaidList(unsaid));
  const status = `${plural(relations.length, "relation")} between ${plural((found.entities ?? []).length, "entity", "entities")}`;
  return { nodes, status, redraw, stage };
}

function none(found) {
  const why = (found.entities ?? []).length < 2 ? "Fewer than two names were found in it." : "Its sentences assert none that the model knows.";
  return h("div", { class: "nothing card" }, h("h2", {}, "No relation"), h("p", {}, why));
}

/** Where sentences begin, which then get a paragraph of their own, so that arrows cross as few others as can be. */
function breaksOf(pairs) {
  return new Set(pairs.map((pair) => pair.sentenceStart ?? 0));
}

/** The text with its entities marked; `mentions` finds the element of a mention by its first character. */
function sentence(string, entities, breaks) {
  const text = new Text(string);
  const mentions = new Map();
  const lines = [h("p", { class: "passage large" })];
  let at = 0;
  const plain = (end) => {
    for (const cut of [...breaks].filter((place) => place > at && place <= end).sort((a, b) => a - b)) {
      lines.at(-1).append(text.slice(at, cut));
      lines.push(h("p", { class: "passage large" }));
      at = cut;
    }
    lines.at(-1).append(text.slice(at, end));
    at = end;
  };
  for (const entity of entities) {
    const start = entity.start ?? 0;
    plain(start);
    const kind = (entity.type ?? "").replace("ENTITY_TYPE_", "").toLowerCase();
    const element = h("span", { class: "entity", title: kind || null }, text.slice(start, entity.end));
    mentions.set(start, element);
    lines.at(-1).append(element);
    at = entity.end;
  }
  plain(text.length);
  const stage = h("section", { class: "card sentence-stage", "aria-label": "The text" }, lines);
  return { stage, mentions };
}

/** Arrows above the words; long ones rise above short ones, and each sentence makes room for its own. */
function drawArcs(arcs, stage, relations, mentions) {
  const ends = relations.map(({ pair, relation }, place) => ({
    from: mentions.get(pair.head.start ?? 0),
    to: mentions.get(pair.tail.start ?? 0),
    label: relation.relation,
    place,
  }));
  const whole = ends.filter(({ from, to }) => from && to);
  const levels = levelsOf(whole.map(({ from, to }) => reach(from, to)));
  for (const line of stage.querySelectorAll("p")) {
    const mine = levels.filter((_, index) => lower(whole[index].from, whole[index].to).parentElement === line);
    line.style.setProperty("--rise", mine.length ? `${FIRST_RISE + NEXT_RISE * Math.max(...mine)}px` : "0px");
  }
  const frame = stage.getBoundingClientRect();
  arcs.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  const drawn = whole.map((end, index) => arc({ ...end, frame, rise: FIRST_RISE + NEXT_RISE * levels[index] - 12 }));
  arcs.replaceChildren(...drawn.flatMap((one) => one.lines), ...drawn.map((one) => one.label));
}

/** Of two mentions the one that stands lower: there is room above it. */
function lower(from, to) {
  return from.getBoundingClientRect().top > to.getBoundingClientRect().top ? from : to;
}

/** Where an arrow stands: the line of the text that it, or its label alone, rises above, and from where to where. */
function reach(from, to) {
  const boxes = [from, to].map((element) => element.getBoundingClientRect());
  const middles = boxes.map((box) => box.left + box.width / 2);
  const [line, other] = boxes.map((box) => Math.round(box.top));
  if (line === other) return { line, left: Math.min(...middles), right: Math.max(...middles) };
  const middle = middles[line > other ? 0 : 1];
  return { line: Math.max(line, other), left: middle, right: middle + LABEL_WIDTH };
}

/** For each arrow the lowest level at which it crosses no shorter one. */
function levelsOf(reaches) {
  const levels = reaches.map(() => 0);
  const order = [...reaches.keys()].sort((a, b) => reaches[a].right - reaches[a].left - (reaches[b].right - reaches[b].left));
  order.forEach((index, turn) => {
    const below = order.slice(0, turn).filter((other) => overlap(reaches[index], reaches[other]));
    levels[index] = below.length ? 1 + Math.max(...below.map((other) => levels[other])) : 0;
  });
  return levels;
}

function overlap(first, second) {
  return first.line === second.line && first.left < second.right && second.left < first.right;
}

function arc({ from, to, frame, place, label, rise }) {
  const [head, tail] = [from, to].map((element) => within(element.getBoundingClientRect(), frame));
  const { path, tip, at, anchor } = head.line === tail.line ? above(head, tail, rise) : across(head, tail, rise);
  const data = { "data-relation": place };
  return {
    lines: [
      svg("path", { class: `arc ${hue(place)}`, d: path, ...data }),
      svg("path", { class: `arrow-head ${hue(place)}`, d: tip, ...data }),
    ],
    label: svg("text", { class: `arc-label ${hue(place)}`, x: at[0], y: at[1] + 4, "text-anchor": anchor, ...data }, label),
  };
}

function within(box, frame) {
  const [top, bottom] = [box.top - frame.top - 1, box.bottom - frame.top + 1];
  return { middle: box.left + box.width / 2 - frame.left, top, bottom, line: Math.round(box.top) };
}

/** Up from the head, along and down to the tail, on one line of the text. */
function above(head, tail, rise) {
  const side = head.middle <= tail.middle ? 1 : -1; // an arrow that leaves and one that arrives stand apart
  const [x1, x2] = [head.middle + 7 * side, tail.middle - 7 * side];
  const top = head.top - rise;
  const bend = Math.min(14, Math.abs(x2 - x1) / 2) * Math.sign(x2 - x1);
  const path =
    `M${x1} ${head.top} V${top + 10} Q${x1} ${top} ${x1 + bend} ${top} ` +
    `H${x2 - bend} Q${x2} ${top} ${x2} ${top + 10} V${tail.top - 7}`;
  return { path, tip: `M${x2} ${tail.top} l-5 -9 h10 z`, at: [(x1 + x2) / 2, top], anchor: "middle" };
}

/** From line to line, past the words between them on the right; the label stands in the room above the lower one. */
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

function row({ pair, relation }, place, stage) {
  const line = h(
    "button",
    { type: "button", class: `match ${hue(place)}` },
    h("strong", {}, pair.head.text),
    h("span", { class: "relation-name" }, `${relation.relation} \u2192`),
    h("strong", {}, pair.tail.text),
  );
  attend(
    line,
    () => only(stage, place),
    () => only(stage, null),
  );
  const sure = meter(relation.probability ?? 0, `${percent(relation.probability ?? 0)} sure`);
  return h("li", { class: "relation" }, line, sure, proof(pair, relation));
}

function proof(pair, relation) {
  const similar = (relation.similarPatterns ?? []).map((one) => h("li", {}, h("code", {}, one.pattern), ` ${decimal(one.score)}`));
  const known = (relation.knownPairs ?? []).map((one) => h("li", {}, `${one.head}, ${one.tail}`));
  return h(
    "details",
    { class: "folded" },
    h("summary", {}, "Why"),
    h("p", {}, "Read as ", h("code", {}, pair.patternScore.pattern), `, score ${decimal(relation.score)}.`),
    h(
      "div",
      { class: "columns" },
      similar.length > 0 && h("div", {}, h("h3", {}, "Like these patterns"), h("ul", {}, similar)),
      known.length > 0 && h("div", {}, h("h3", {}, "Which hold between"), h("ul", {}, known)),
    ),
  );
}

/** Pairs that the text speaks of without asserting anything, each once. */
function notAsserted(pairs) {
  const seen = new Set();
  return pairs.filter((pair) => {
    const key = [pair.head.start ?? 0, pair.tail.start ?? 0].sort((first, second) => first - second).join("-");
    const is = pair.patternScore.assertion !== "ASSERTION_STATUS_ASSERTED" && !seen.has(key);
    seen.add(key);
    return is;
  });
}

function unsaidList(pairs) {
  const items = pairs.map((pair) => {
    const status = pair.patternScore.assertion.replace("ASSERTION_STATUS_", "").toLowerCase();
    const cue = pair.patternScore.assertionCue;
    return h("li", {}, `${pair.head.text}, ${pair.tail.text}: ${status}`, cue && h("span", {}, ` (\u201c${cue}\u201d)`));
  });
  return h("section", { class: "card", "aria-labelledby": "unsaid" }, h("h2", { id: "unsaid" }, "Said, but not asserted"), h("ul", {}, items));
}

function only(stage, place) {
  stage.classList.toggle("focused", place !== null);
  for (const drawn of stage.querySelectorAll("[data-relation]")) {
    drawn.classList.toggle("chosen", Number(drawn.dataset.relation) === place);
  }
}
