/** Two texts side by side, with lines between matching facets. */

import { call } from "../api.js";
import { modelChoices } from "../catalog.js";
import { decimal, enumLabel, field, h, highlightButton, hue, meter, percent, select, svg } from "../dom.js";
import { panel } from "../panel.js";
import { attendsTo, glow, Text, tokenNodes, wordsOf } from "../text.js";

const MAX_MATCHES = 8;
const ATTENDED = { minCosine: 0.2, numTokens: 2 }; // selects the tokens of a facet without a span
const METHODS = [
  ["SIMILARITY_METHOD_UNSPECIFIED", "Best for the model"],
  ["SIMILARITY_METHOD_ENCODER", "Sentence vectors (encoder)"],
  ["SIMILARITY_METHOD_CODEBOOK", "Facets reconstruct each other (codebook)"],
  ["SIMILARITY_METHOD_MAX_FACET", "Closest pair of facets"],
  ["SIMILARITY_METHOD_AVERAGE", "Average of word vectors"],
  ["SIMILARITY_METHOD_PROBABILITY_AVERAGE", "Average weighted by rarity"],
  ["SIMILARITY_METHOD_SIF", "Smooth inverse frequency"],
];
const LABELS = {
  INFERENCE_LABEL_ENTAILS: "The second follows from the first.",
  INFERENCE_LABEL_CONTRADICTS: "They contradict each other.",
};
const EXAMPLES = [
  {
    label: "A tram, a railway",
    values: {
      first:
        "The council will build a tram line from the harbour to the university. It costs 240 million, and half of that " +
        "must be borrowed. Shopkeepers fear that the works will keep their customers away.",
      second:
        "A new railway is to link the port with the campus. Owners of stores worry about losing trade while the streets " +
        "are dug up. Cyclists get a lane of their own on the bridge.",
    },
  },
  { label: "Open, closed", values: { first: "The door to the cellar is open.", second: "The door to the cellar is closed." } },
  { label: "Who chased whom", values: { first: "The cat chased the dog.", second: "The dog chased the cat." } },
  { label: "Lifting weights", values: { first: "A man is lifting weights in a garage.", second: "A man is lifting weights." } },
  { label: "A dog, a puppy", values: { first: "A dog is barking at the door.", second: "A puppy makes noise outside." } },
  { label: "Unrelated", values: { first: "The orchestra played a symphony.", second: "Interest rates rose again in March." } },
];

/** Fills `root` with the view. */
export async function open(root) {
  const models = [["", "Default of the method"], ...(await modelChoices("passages", "sentences"))];
  const text = (label, name) => field(label, h("textarea", { name, rows: 3, required: true }));
  return panel(root, {
    name: "similarity",
    title: "Similarity",
    lede: "How similar two texts are, and through which facets. Each line is a match; thicker lines explain more of the score.",
    controls: [
      h("div", { class: "halves" }, text("First text", "first"), text("Second text", "second")),
      h("div", { class: "columns" }, field("Method", select("method", METHODS)), field("Model", select("model", models))),
    ],
    action: "Compare",
    examples: EXAMPLES,
    ask,
    show,
  });
}

async function ask({ first, second, method, model }, signal) {
  const scored = await score({ pairs: [{ first, second }], method, model, explain: true, numWords: 4 }, signal);
  const texts = { texts: [first, second], model: scored.model.name, numWords: 5 };
  const { explanations } = await call("EmbeddingService/Explain", texts, signal);
  return { scored, explanations };
}

/** Scores a pair, with a calibrated score if the model has a curve for the method. */
async function score(request, signal) {
  try {
    return await call("SimilarityService/Score", { ...request, calibrated: true }, signal);
  } catch (error) {
    if (error.code !== "failed_precondition") throw error;
    return call("SimilarityService/Score", request, signal);
  }
}

function show({ scored, explanations }, values) {
  const pair = scored.scores[0];
  const matches = (pair.explanation?.matches ?? []).slice(0, MAX_MATCHES).map((match) => ({ firstFacet: 0, secondFacet: 0, contribution: 0, ...match }));
  const sides = [
    new Side(values.first, explanations[0], matches.map((match) => [match.firstFacet, match.firstWords])),
    new Side(values.second, explanations[1], matches.map((match) => [match.secondFacet, match.secondWords])),
  ];
  const lines = svg("svg", { class: "lines", "aria-hidden": "true" });
  const stage = h("section", { class: "pair card", "aria-label": "The two texts" }, lines, sides.map((side) => side.element));
  const focus = (index) => {
    stage.classList.toggle("focused", index !== null);
    for (const path of lines.children) path.classList.toggle("chosen", index !== null && Number(path.dataset.match) === index);
    sides[0].focus(matches[index]?.firstFacet ?? null);
    sides[1].focus(matches[index]?.secondFacet ?? null);
  };
  const rows = matches.map((match, index) => h("li", {}, matchButton(match, index, focus)));
  const list = h("section", { class: "stack tight", "aria-labelledby": "matches" }, h("h2", { id: "matches" }, "Matching facets"), h("ol", { class: "matches" }, rows));
  return {
    nodes: [verdict(pair, scored.method), stage, list],
    status: `${methodName(scored.method)} by ${scored.model?.name}`,
    redraw: () => drawLines(lines, stage, sides, matches),
    stage,
  };
}

function verdict(pair, method) {
  const calibrated = pair.calibratedScore;
  const differences = (pair.differences ?? []).map(({ kind, first, second }) =>
    h("li", {}, h("mark", {}, first), " / ", h("mark", {}, second), ` differ (${enumLabel(kind, "DIFFERENCE_KIND_")})`),
  );
  return h(
    "section",
    { class: "card verdict", "aria-label": "Score" },
    h("span", { class: "big" }, calibrated === undefined ? decimal(pair.score) : percent(calibrated)),
    calibrated === undefined ? h("span", {}, "score") : meter(calibrated, "similar, on a human scale"),
    h("span", { class: "small" }, `${methodName(method)}: ${decimal(pair.score, 3)}`),
    LABELS[pair.label] && h("span", {}, LABELS[pair.label]),
    differences.length > 0 && h("ul", { class: "small", "aria-label": "Differences" }, differences),
  );
}

function methodName(method) {
  return enumLabel(method, "SIMILARITY_METHOD_");
}

/** One of the texts, and below it its matching facets, shown by their nearest words. */
class Side {
  constructor(string, { tokens = [], facets = [] }, matched) {
    const facetsOf = (token, index) => facets.filter((facet) => attendsTo(facet, token, index, ATTENDED)).map((facet) => facet.facet ?? 0);
    this.nodes = new Map(matched.map(([facet, nearest]) => [facet, h("span", { class: "node" }, wordsOf(nearest, 2))]));
    this.passage = h("p", { class: "passage" }, tokenNodes(new Text(string), tokens, facetsOf));
    this.element = h("div", { class: "side" }, this.passage, h("div", { class: "nodes", "aria-hidden": "true" }, [...this.nodes.values()]));
  }

  focus(facet) {
    glow(this.passage, facet);
    for (const [number, node] of this.nodes) node.classList.toggle("dim", facet !== null && number !== facet);
  }
}

function drawLines(lines, stage, [first, second], matches) {
  const frame = stage.getBoundingClientRect();
  const maxContribution = Math.max(...matches.map((match) => match.contribution), Number.EPSILON);
  lines.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  const paths = matches.map((match, index) => {
    const from = first.nodes.get(match.firstFacet).getBoundingClientRect();
    const to = second.nodes.get(match.secondFacet).getBoundingClientRect();
    const path = svg("path", { class: `line ${hue(index)}`, d: curve(from, to, frame), "data-match": index });
    path.style.strokeWidth = `${1.5 + (6 * match.contribution) / maxContribution}px`;
    return path;
  });
  lines.replaceChildren(...paths);
}

/** A line from the right edge of one box to the left edge of another. */
function curve(from, to, frame) {
  const [x1, y1] = [from.right - frame.left, from.top + from.height / 2 - frame.top];
  const [x2, y2] = [to.left - frame.left, to.top + to.height / 2 - frame.top];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}

function matchButton(match, index, focus) {
  return highlightButton(
    { class: `match ${hue(index)}` },
    { enter: () => focus(index), leave: () => focus(null) },
    h("span", { class: "side-words" }, wordsOf(match.firstWords)),
    h("span", { class: "arrow" }, "\u2194"),
    h("span", { class: "side-words" }, wordsOf(match.secondWords)),
    h("span", { class: "number" }, `cosine ${decimal(match.cosine)}`),
    h("span", { class: "number", title: "share of the score" }, percent(match.contribution)),
  );
}
