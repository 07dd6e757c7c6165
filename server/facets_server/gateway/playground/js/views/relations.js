/** Relations between the entities of a text, which are highlighted in it. */

import { call } from "../api.js";
import { card, decimal, enumLabel, field, folded, h, highlightButton, hue, meter, nothing, percent, plural } from "../dom.js";
import { panel } from "../panel.js";
import { glow, marked, Text } from "../text.js";

const EXAMPLES = [
  ["Marie Curie", "Marie Curie was born in Warsaw and married Pierre Curie, who died in Paris. Warsaw is the capital of Poland."],
  [
    "Said, denied, asked",
    "Franz Kafka was born in Prague. Ludwig Wittgenstein was not born in Berlin. Was Freddie Mercury born in Zanzibar? The capital of Norway is Oslo.",
  ],
].map(([label, text]) => ({ label, values: { text } }));

export async function open(root) {
  return panel(root, {
    lede: "What sentences assert about the people, places and works they name. Point at a relation, or press it, to highlight its two entities.",
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
  const marks = entities.map(({ start = 0, end, type }) => {
    const facets = relations.flatMap(({ pair: { head, tail } }, index) => ([head.start ?? 0, tail.start ?? 0].includes(start) ? [index] : []));
    return { start, end, kind: "entity", title: enumLabel(type, "ENTITY_TYPE_") || null, facets };
  });
  const shown = h("p", { class: "passage" }, marked(new Text(string), marks));
  const reason = entities.length < 2 ? "The text names fewer than two entities." : "The text asserts no relation that the model knows.";
  const rows = relations.map((found, index) => relationRow(found, index, (isOn) => glow(shown, isOn ? index : null)));
  return {
    nodes: [
      h("section", { class: "card", "aria-label": "The text" }, shown),
      rows.length ? h("div", { class: "card" }, h("ol", { class: "matches" }, rows)) : nothing("No relation", h("p", {}, reason)),
      notAsserted(pairs),
    ],
    status: `${plural(relations.length, "relation")} between ${plural(entities.length, "entity", "entities")}`,
  };
}

function relationRow({ pair, relation }, index, focus) {
  const line = highlightButton(
    { class: `facet ${hue(index)}` },
    focus,
    h("strong", {}, pair.head.text),
    h("span", { class: "paint" }, ` ${relation.relation} \u2192 `),
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
  return shown.length ? card("Mentioned, but not asserted", h("ul", {}, shown)) : "";
}
