/** The facets of a text in words, and the attention of each token. */

import { call } from "../api.js";
import { modelChoices } from "../catalog.js";
import { decimal, field, folded, h, highlightButton, hue, plural, select } from "../dom.js";
import { panel } from "../panel.js";
import { glow, marked, nameOf, Text, tokenMarks, wordsOf } from "../text.js";

const NUM_WORDS = 8;
const EXAMPLES = [
  [
    "Plants, pianos, taxes",
    "Plants take in water and carbon dioxide and, with the energy of sunlight, make sugar and oxygen. The first piano was built around 1700 in " +
      "Florence by Bartolomeo Cristofori. Income taxes are due on the fifteenth of April, and those who file late pay a fee for every month.",
  ],
  ["A match in one sentence", "The striker scored in extra time."],
].map(([label, text]) => ({ label, values: { text } }));

export async function open(root) {
  const models = await modelChoices("passages", "sentences");
  return panel(root, {
    title: "Facets of a text",
    lede: "Point at a facet, or press it, to highlight the words that it attends to. The stronger the colour of a word, the more it matters.",
    controls: [
      field("Text", h("textarea", { name: "text", rows: 4, required: true })),
      folded("Settings", h("div", { class: "columns" }, field("Model", select("model", models)))),
    ],
    action: "Show facets",
    examples: EXAMPLES,
    ask: ({ text, model }, signal) => call("EmbeddingService/Explain", { texts: [text], model, numWords: NUM_WORDS }, signal),
    show: (answer, values) => explained(answer.explanations[0], values.text),
  });
}

/** A text with its facets as cards that highlight their words. */
function explained({ facets: messages = [], tokens = [], tokenStats = {} }, string) {
  const facets = messages.map((facet) => ({ facet: 0, ...facet }));
  const maxAttention = Math.max(...tokens.map((token) => token.attention ?? 0), Number.EPSILON);
  const look = (token) => ({
    kind: `token attention-${Math.round((4 * (token.attention ?? 0)) / maxAttention)}`,
    title: token.known ? `attention ${decimal(token.attention)}` : "not in the vocabulary",
  });
  const passage = h("p", { class: "passage" }, marked(new Text(string), tokenMarks({ tokens, facets }, look)));
  const legend = ["none", "little", "some", "much", "most"].map((label, level) => [h("span", { class: `token attention-${level}` }, label), " "]);
  const nodes = [
    h("section", { class: "card stack", "aria-label": "The text" }, passage, h("p", { class: "small" }, "Attention: ", legend)),
    h("div", { class: "columns" }, facets.map((facet) => facetCard(facet, tokens, passage))),
  ];
  const truncated = tokenStats.truncated ? `; only the first ${tokenStats.numTokens} of at least ${tokenStats.numTokensInText} tokens were read` : "";
  const unknown = tokenStats.numUnknownTokens ? `; ${plural(tokenStats.numUnknownTokens, "unknown word")}` : "";
  return { nodes, status: `${plural(facets.length, "facet")}${truncated}${unknown}` };
}

function facetCard({ facet, tokens: attentions = [], words = [] }, tokens, passage) {
  const attended = attentions.slice(0, 4).map((attention) => tokens[attention.token ?? 0]?.text);
  return highlightButton(
    { class: `facet facet-card ${hue(facet)}` },
    (isOn) => glow(passage, isOn ? facet : null),
    h("strong", {}, nameOf(words)),
    h("span", { class: "small" }, wordsOf(words)),
    attended.length > 0 && h("span", { class: "small" }, `attends to ${attended.join(", ")}`),
  );
}
