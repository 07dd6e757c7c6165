/** Who would write and who would cite a paper, and why. */

import { call } from "../api.js";
import { decimal, field, h, hue, meter, plural, select } from "../dom.js";
import { panel } from "../panel.js";

const KINDS = [["RecommendAuthors", "Who would write it"], ["RecommendCitations", "Which papers would cite it"]];
const EXAMPLES = [
  {
    label: "A parser",
    values: {
      title: "A parser for free word order languages",
      abstract: "We describe a dependency parser for languages whose word order is free, and evaluate it on Czech and Latvian.",
      kind: "RecommendAuthors",
    },
  },
  {
    label: "Machine translation",
    values: {
      title: "Phrase-based translation with neural reordering",
      abstract: "A statistical machine translation system learns to reorder phrases and gains two points of BLEU on German.",
      kind: "RecommendAuthors",
    },
  },
  {
    label: "Who would cite it: word senses",
    values: {
      title: "Word sense disambiguation without labelled data",
      abstract: "Senses are induced from context vectors of raw text and evaluated against WordNet.",
      kind: "RecommendCitations",
    },
  },
];

/** Fills `root` with the view. */
export async function open(root) {
  return panel(root, {
    name: "papers",
    title: "Papers",
    lede: "From title and abstract alone: authors that a paper suits, or papers that would cite it, each with the reason.",
    controls: [
      field("Title", h("input", { name: "title", required: true, autocomplete: "off" })),
      field("Abstract (may be empty)", h("textarea", { name: "abstract", rows: 4 })),
      h(
        "div",
        { class: "columns" },
        field("Wanted", select("kind", KINDS)),
        field("Answers", select("top_k", [["5", "5"], ["10", "10"], ["20", "20"]], "10")),
        field(
          "Never these (may be empty)",
          h("input", { name: "excluded", autocomplete: "off" }),
          "Names or ids with a semicolon between them, for conflicts of interest.",
        ),
      ),
    ],
    action: "Recommend",
    examples: EXAMPLES,
    ask: (values, signal) => call(`RecommendationService/${values.kind}`, request(values), signal),
    show: (answer) => show(answer.results?.[0]?.candidates ?? []),
  });
}

function request(values) {
  const excluded = values.excluded.split(";").map((name) => name.trim()).filter(Boolean);
  return {
    papers: [{ title: values.title, abstract: values.abstract, excludedIds: excluded }],
    options: { topK: Number(values.top_k), evidence: true },
  };
}

function show(candidates) {
  if (candidates.length === 0) {
    const text = "Nobody is left: exclude fewer, or write more of the abstract.";
    return { nodes: [h("div", { class: "nothing card" }, h("h2", {}, "No candidate"), h("p", {}, text))], status: "" };
  }
  return {
    nodes: [h("ol", { class: "hits" }, candidates.map(card))],
    status: `${plural(candidates.length, "candidate")}, best first`,
  };
}

function card(candidate) {
  const evidence = candidate.evidence ?? {};
  const facet = evidence.facet ?? 0;
  const near = (evidence.nearestWords ?? []).slice(0, 5).map((one) => one.word);
  return h(
    "li",
    { class: "card hit" },
    h(
      "div",
      { class: "hit-head" },
      h("h2", {}, candidate.name || candidate.id),
      meter(candidate.score ?? 0, `score ${decimal(candidate.score)}`),
    ),
    near.length > 0 &&
      h(
        "p",
        { class: `reason ${hue(facet)}` },
        h("span", { class: "swatch" }),
        `Facet ${facet + 1} of the paper brought this up: `,
        h("em", {}, near.join(", ")),
      ),
    papers(evidence.nearestPapers ?? []),
    h(
      "span",
      { class: "scores" },
      `facets ${decimal(candidate.facetScore)} \u00b7 documents ${decimal(candidate.documentScore)}`,
    ),
  );
}

function papers(nearest) {
  if (nearest.length === 0) return null;
  const items = nearest.map((paper) =>
    h("li", {}, paper.title || paper.id, h("span", { class: "number" }, ` ${paper.id}, cosine ${decimal(paper.cosine)}`)),
  );
  return h("details", { class: "folded" }, h("summary", {}, `Closest work (${items.length})`), h("ul", { class: "plain-list" }, items));
}
