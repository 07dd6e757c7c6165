/** One text: what it is about, facet by facet, and how much each word matters. */

import { call } from "../api.js";
import { attend, decimal, field, h, hue, plural, select } from "../dom.js";
import { panel } from "../panel.js";
import { modelChoices } from "../served.js";
import { glow, span, Text } from "../text.js";

const NUM_WORDS = 6;
const EXAMPLES = [
  {
    label: "Plants, pianos, taxes",
    values: {
      text:
        "Plants take in water and carbon dioxide and, with the energy of sunlight, make sugar and oxygen. " +
        "The first piano was built around 1700 in Florence by Bartolomeo Cristofori, who kept the Medici's harpsichords. " +
        "Income taxes are due on the fifteenth of April, and those who file late pay a fee for every month.",
    },
  },
  { label: "A match in one sentence", values: { text: "The striker scored in extra time." } },
  {
    label: "A news item",
    values: {
      text:
        "The central bank raised interest rates by half a point to slow inflation. Shares of airlines fell, while the " +
        "wheat harvest in Ukraine was better than farmers had feared after the dry spring.",
    },
  },
];

/** Fills `root` with the view. */
export async function open(root) {
  const models = await modelChoices("passages", "sentences");
  return panel(root, {
    name: "facets",
    title: "Facets of a text",
    lede: "Point at a facet, or press it, and the words that it attends to light up. The stronger the colour of a word, the more it matters.",
    controls: [
      field("Text", h("textarea", { name: "text", rows: 4, required: true })),
      h("div", { class: "columns" }, field("Model", select("model", models))),
    ],
    action: "Show facets",
    examples: EXAMPLES,
    ask: (values, signal) =>
      call(
        "EmbeddingService/Explain",
        { texts: [values.text], model: values.model, numWords: NUM_WORDS },
        signal,
      ),
    show,
  });
}

function show(answer, values) {
  return explained(answer.explanations[0], values.text);
}

/** A text with its facets: the words of each light up. */
export function explained(explanation, string) {
  const text = new Text(string);
  const facets = (explanation.facets ?? []).map((facet) => ({ ...facet, facet: facet.facet ?? 0, span: span(facet.span) }));
  const passage = h("p", { class: "passage large" }, attended(text, explanation.tokens ?? [], facets));
  const nodes = [
    h("section", { class: "card", "aria-label": "The text" }, passage, legend()),
    h("ul", { class: "facet-grid" }, facets.map((facet) => facetCard(facet, explanation.tokens ?? [], passage))),
  ];
  return { nodes, status: told(facets, explanation.tokenStats ?? {}) };
}

function told(facets, stats) {
  const read = stats.truncated
    ? `; only the first ${stats.numTokens} of at least ${stats.numTokensInText} tokens were read`
    : "";
  const unknown = stats.numUnknownTokens ? `; ${plural(stats.numUnknownTokens, "unknown word")}` : "";
  return `${plural(facets.length, "facet")}${read}${unknown}`;
}

/** The text with every token shaded by its attention and tied to the facets that attend to it. */
function attended(text, tokens, facets) {
  const strongest = Math.max(...tokens.map((token) => token.attention ?? 0), Number.EPSILON);
  const nodes = [];
  let at = 0;
  tokens.forEach((token, place) => {
    const start = token.start ?? 0;
    if (start > at) nodes.push(text.slice(at, start));
    const mine = facets.filter((facet) => belongs(facet, token, place)).map((facet) => facet.facet);
    const level = Math.round((4 * (token.attention ?? 0)) / strongest);
    nodes.push(
      h(
        "span",
        { class: `token attention-${level}`, data: { facets: mine.join(" ") }, title: tokenTitle(token) },
        text.slice(start, token.end),
      ),
    );
    at = token.end;
  });
  nodes.push(text.slice(at, text.length));
  return nodes;
}

function tokenTitle(token) {
  return token.known ? `attention ${decimal(token.attention)}` : "not in the vocabulary";
}

/** By its place where the model says where a facet stands, else by the tokens it attends to. */
function belongs(facet, token, place) {
  if (facet.span) return (token.start ?? 0) < facet.span.end && token.end > facet.span.start;
  return (facet.tokens ?? []).some((attendedTo) => (attendedTo.token ?? 0) === place && attendedTo.cosine > 0.15);
}

function facetCard(facet, tokens, passage) {
  const near = facet.words ?? [];
  const attendsTo = (facet.tokens ?? []).slice(0, 4).map((one) => tokens[one.token ?? 0]?.text);
  const button = h(
    "button",
    { type: "button", class: `facet-card ${hue(facet.facet)}` },
    h("span", { class: "facet-number" }, h("span", { class: "swatch" }), `Facet ${facet.facet + 1}`),
    h("span", { class: "facet-words" }, near.map((word) => wordSize(word))),
    attendsTo.length > 0 && h("span", { class: "small" }, `attends to ${attendsTo.join(", ")}`),
  );
  attend(
    button,
    () => glow(passage, facet.facet),
    () => glow(passage, null),
  );
  return h("li", {}, button);
}

function wordSize(near) {
  const level = near.cosine >= 0.6 ? "near-1" : near.cosine >= 0.45 ? "near-2" : "near-3";
  return h("span", { class: level, title: `cosine ${decimal(near.cosine)}` }, `${near.word} `);
}

function legend() {
  return h(
    "p",
    { class: "legend small" },
    "Attention: ",
    [0, 1, 2, 3, 4].map((level) => h("span", { class: `token attention-${level}` }, ["none", "little", "some", "much", "most"][level])),
  );
}
