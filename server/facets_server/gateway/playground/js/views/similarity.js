/** Two texts side by side, with lines where their facets meet. */

import { call } from "../api.js";
import { attend, decimal, field, h, hue, meter, percent, select, svg } from "../dom.js";
import { panel } from "../panel.js";
import { modelChoices } from "../served.js";
import { glow, span, Text } from "../text.js";

const SHOWN = 8;
const LEAST_COSINE = 0.2; // of a token that a facet is taken to attend to
const METHODS = [
  ["SIMILARITY_METHOD_UNSPECIFIED", "What agrees best with people"],
  ["SIMILARITY_METHOD_ENCODER", "Sentence vectors (encoder)"],
  ["SIMILARITY_METHOD_CODEBOOK", "Facets rebuild each other (codebook)"],
  ["SIMILARITY_METHOD_MAX_FACET", "Closest pair of facets"],
  ["SIMILARITY_METHOD_AVERAGE", "Average of word vectors"],
  ["SIMILARITY_METHOD_PROBABILITY_AVERAGE", "Average, rare words weigh more"],
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
  const models = [["", "The one that the method is for"], ...(await modelChoices("passages", "sentences"))];
  let redraw = () => {};
  const resized = new ResizeObserver(() => redraw());
  const view = panel(root, {
    name: "similarity",
    title: "Similarity",
    lede: "How alike two texts are, and through which facets. Each line is a meeting; thick lines explain more of the score.",
    controls: [
      h(
        "div",
        { class: "halves" },
        field("First text", h("textarea", { name: "first", rows: 3, required: true })),
        field("Second text", h("textarea", { name: "second", rows: 3, required: true })),
      ),
      h("div", { class: "columns" }, field("Scored by", select("method", METHODS)), field("Model", select("model", models))),
    ],
    action: "Compare",
    examples: EXAMPLES,
    ask,
    show: (answer, values) => {
      const drawn = show(answer, values);
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

async function ask(values, signal) {
  const score = {
    pairs: [{ first: values.first, second: values.second }],
    method: values.method,
    model: values.model,
    explain: true,
    numWords: 4,
  };
  const scored = await calibrated(score, signal);
  // By the model that scored: which one that is, the method may decide.
  const texts = { texts: [values.first, values.second], model: scored.model.name, numWords: 5 };
  const explained = await call("EmbeddingService/Explain", texts, signal);
  return { scored, explanations: explained.explanations };
}

/** With the score on people's scale where the model has a curve for the method. */
async function calibrated(request, signal) {
  try {
    return await call("SimilarityService/Score", { ...request, calibrated: true }, signal);
  } catch (error) {
    if (error.code !== "failed_precondition") throw error;
    return call("SimilarityService/Score", request, signal);
  }
}

function show({ scored, explanations }, values) {
  const score = scored.scores[0];
  const matches = (score.explanation?.matches ?? []).slice(0, SHOWN).map((match) => ({ firstFacet: 0, secondFacet: 0, contribution: 0, ...match }));
  const sides = [
    new Side(values.first, explanations[0], matches.map((match) => [match.firstFacet, match.firstWords])),
    new Side(values.second, explanations[1], matches.map((match) => [match.secondFacet, match.secondWords])),
  ];
  const lines = svg("svg", { class: "lines", "aria-hidden": "true" });
  const stage = h("section", { class: "pair card", "aria-label": "The two texts" }, lines, sides.map((side) => side.element));
  const redraw = () => drawLines(lines, stage, sides, matches);
  stage.addEventListener("shown", redraw);
  const rows = matches.map((match, place) => matchRow(match, place, () => only(stage, sides, match, place), () => only(stage, sides, null)));
  return {
    nodes: [
      verdict(score, scored),
      stage,
      h("section", { class: "stack tight", "aria-labelledby": "meetings" }, h("h2", { id: "meetings" }, "Meetings"), h("ol", { class: "matches" }, rows)),
    ],
    status: `${methodName(scored.method)} by ${scored.model?.name}`,
    redraw,
    stage,
  };
}

function verdict(score, scored) {
  const people = score.calibratedScore;
  return h(
    "section",
    { class: "card verdict", "aria-label": "Score" },
    h("span", { class: "big" }, people === undefined ? decimal(score.score) : percent(people)),
    people === undefined ? h("span", {}, "score") : meter(people, "alike, as people would judge"),
    h("span", { class: "small" }, `${methodName(scored.method)}: ${decimal(score.score, 3)}`),
    LABELS[score.label] ? h("span", {}, LABELS[score.label]) : "",
    (score.differences ?? []).length ? h("ul", { class: "small", "aria-label": "What differs" }, score.differences.map(difference)) : "",
  );
}

function difference(one) {
  const kind = one.kind.replace("DIFFERENCE_KIND_", "").toLowerCase();
  return h("li", {}, h("mark", {}, one.first), " / ", h("mark", {}, one.second), ` differ (${kind})`);
}

function methodName(method) {
  return (method ?? "").replace("SIMILARITY_METHOD_", "").toLowerCase().replaceAll("_", " ");
}

/** One of the texts: its words, and under them the facets that met, each as its nearest words. */
class Side {
  constructor(string, explanation, met) {
    this.tokens = explanation.tokens ?? [];
    this.facets = new Map((explanation.facets ?? []).map((facet) => [facet.facet ?? 0, facet]));
    this.nodes = new Map(met.map(([facet, near]) => [facet, h("span", { class: "node" }, wordsOf(near, 2))]));
    this.passage = h("p", { class: "passage" }, this.#words(new Text(string)));
    this.element = h("div", { class: "side" }, this.passage, h("div", { class: "nodes", "aria-hidden": "true" }, [...this.nodes.values()]));
  }

  #words(text) {
    let at = 0;
    const nodes = this.tokens.flatMap((token, place) => {
      const before = text.slice(at, token.start ?? 0);
      at = token.end;
      const mine = [...this.facets].filter(([, facet]) => attendsTo(facet, token, place)).map(([number]) => number);
      return [before, h("span", { class: "token", data: { facets: mine.join(" ") } }, text.slice(token.start ?? 0, token.end))];
    });
    return [...nodes, text.slice(at, text.length)];
  }

  focus(facet) {
    glow(this.passage, facet);
    for (const [number, node] of this.nodes) node.classList.toggle("dim", facet !== null && number !== facet);
  }
}

/** By its place where the model says where a facet stands, else the two tokens that it attends to most. */
function attendsTo(facet, token, place) {
  const stands = span(facet.span);
  if (stands) return (token.start ?? 0) < stands.end && token.end > stands.start;
  return (facet.tokens ?? []).slice(0, 2).some((one) => (one.token ?? 0) === place && one.cosine > LEAST_COSINE);
}

function wordsOf(near, number = 3) {
  return (near ?? []).slice(0, number).map((one) => one.word).join(", ");
}

function drawLines(lines, stage, [first, second], matches) {
  const frame = stage.getBoundingClientRect();
  const strongest = Math.max(...matches.map((match) => match.contribution), Number.EPSILON);
  lines.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  const paths = matches.map((match, place) => {
    const from = first.nodes.get(match.firstFacet).getBoundingClientRect();
    const to = second.nodes.get(match.secondFacet).getBoundingClientRect();
    const path = svg("path", { class: `line ${hue(place)}`, d: curve(from, to, frame), "data-match": place });
    path.style.strokeWidth = `${1.5 + (6 * match.contribution) / strongest}px`;
    return path;
  });
  lines.replaceChildren(...paths);
}

/** From the right edge of one box to the left edge of another. */
function curve(from, to, frame) {
  const [x1, y1] = [from.right - frame.left, from.top + from.height / 2 - frame.top];
  const [x2, y2] = [to.left - frame.left, to.top + to.height / 2 - frame.top];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}

function matchRow(match, place, enter, leave) {
  const [first, second] = [wordsOf(match.firstWords), wordsOf(match.secondWords)];
  const share = percent(match.contribution);
  const button = h(
    "button",
    { type: "button", class: `match ${hue(place)}` },
    h("span", { class: "side-words" }, first),
    h("span", { class: "arrow" }, "\u2194"),
    h("span", { class: "side-words" }, second),
    h("span", { class: "number" }, `cosine ${decimal(match.cosine)}`),
    h("span", { class: "number", title: "share of the score" }, share),
  );
  attend(button, enter, leave);
  return h("li", {}, button);
}

function only(stage, [first, second], match, place = null) {
  stage.classList.toggle("focused", match !== null);
  for (const path of stage.querySelectorAll(".line")) path.classList.toggle("chosen", Number(path.dataset.match) === place && match !== null);
  first.focus(match?.firstFacet ?? null);
  second.focus(match?.secondFacet ?? null);
}
