/** Two texts side by side, and their matching facets with bars between them. */

import { call, ignored } from "../api.js";
import { modelChoices } from "../catalog.js";
import { card, decimal, enumLabel, field, folded, h, highlightButton, hue, meter, percent, select } from "../dom.js";
import { panel } from "../panel.js";
import { glow, marked, nameOf, Text, tokenMarks } from "../text.js";

const MAX_MATCHES = 8;
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
  INFERENCE_LABEL_EQUIVALENT: "They say the same.",
  INFERENCE_LABEL_ENTAILS: "The second follows from the first.",
  INFERENCE_LABEL_CONTRADICTS: "They contradict each other.",
};
const EXAMPLES = [
  [
    "A tram, a railway",
    "The council will build a tram line from the harbour to the university. Shopkeepers fear that customers will stay away during the works.",
    "A new railway is to link the port with the campus. Owners of stores worry about losing trade while the streets are dug up.",
  ],
  ["Open, closed", "The door to the cellar is open.", "The door to the cellar is closed."],
  ["Who chased whom", "The cat chased the dog.", "The dog chased the cat."],
  ["A dog, a puppy", "A dog is barking at the door.", "A puppy makes noise outside."],
  ["Unrelated", "The orchestra played a symphony.", "Interest rates rose again in March."],
].map(([label, first, second]) => ({ label, values: { first, second } }));

export async function open(root) {
  const models = [["", "Default of the method"], ...(await modelChoices("passages", "sentences"))];
  const text = (label, name) => field(label, h("textarea", { name, rows: 3, required: true }));
  return panel(root, {
    lede: "How similar two texts are, and through which facets. Thicker bars explain more of the score.",
    controls: [
      h("div", { class: "halves" }, text("First text", "first"), text("Second text", "second")),
      folded("Settings", h("div", { class: "columns" }, field("Method", select("method", METHODS)), field("Model", select("model", models)))),
    ],
    action: "Compare",
    examples: EXAMPLES,
    ask,
    show,
  });
}

async function ask({ first, second, method, model }, signal) {
  const request = { pairs: [{ first, second }], method, model, explain: true, numWords: 8 };
  const calibrated = await call("SimilarityService/Score", { ...request, calibrated: true }, signal).catch(ignored("failed_precondition"));
  const scored = calibrated ?? (await call("SimilarityService/Score", request, signal)); // some models have no curve for the method
  const { explanations } = await call("EmbeddingService/Explain", { texts: [first, second], model: scored.model.name, numWords: 5 }, signal);
  return { scored, explanations };
}

function show({ scored, explanations }, { first, second }) {
  const pair = scored.scores[0];
  const method = enumLabel(scored.method, "SIMILARITY_METHOD_");
  const passages = [first, second].map((string, index) => h("p", { class: "passage" }, marked(new Text(string), tokenMarks(explanations[index]))));
  const matches = (pair.explanation?.matches ?? []).slice(0, MAX_MATCHES).map((match) => ({ firstFacet: 0, secondFacet: 0, contribution: 0, ...match }));
  const maxContribution = Math.max(...matches.map((match) => match.contribution), Number.EPSILON);
  const rows = matches.map((match, index) => h("li", {}, matchButton(match, index, { passages, maxContribution })));
  return {
    nodes: [
      verdict(pair, method),
      h("section", { class: "card halves", "aria-label": "The two texts" }, passages),
      card("Matching facets", h("ol", { class: "matches" }, rows)),
    ],
    status: `${method} by ${scored.model?.name}`,
  };
}

function verdict(pair, method) {
  const calibrated = pair.calibratedScore;
  const difference = ({ first, second }) => h("li", {}, h("mark", {}, first), " / ", h("mark", {}, second), " differ");
  const differences = (pair.differences ?? []).map(difference);
  return h(
    "section",
    { class: "card row verdict", "aria-label": "Score" },
    h("span", { class: "big" }, calibrated === undefined ? decimal(pair.score) : percent(calibrated)),
    calibrated === undefined ? h("span", {}, "score") : meter(calibrated, "similar, on a human scale"),
    h("span", { class: "small" }, `${method}: ${decimal(pair.score, 3)}`),
    LABELS[pair.label] && h("span", {}, LABELS[pair.label]),
    differences.length > 0 && h("ul", { class: "small", "aria-label": "Differences" }, differences),
  );
}

function matchButton(match, index, { passages, maxContribution }) {
  const bond = h("span", { class: "bond" });
  bond.style.height = `${2 + (8 * match.contribution) / maxContribution}px`;
  const focus = (isOn) => [match.firstFacet, match.secondFacet].forEach((facet, side) => glow(passages[side], isOn ? facet : null));
  return highlightButton(
    { class: `facet match ${hue(index)}` },
    focus,
    h("span", {}, nameOf(match.firstWords)),
    bond,
    h("span", {}, nameOf(match.secondWords)),
    h("span", { class: "number" }, `cosine ${decimal(match.cosine)}`),
    h("span", { class: "number", title: "share of the score" }, percent(match.contribution)),
  );
}
