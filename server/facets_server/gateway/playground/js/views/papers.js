/** Authors that fit a paper, or papers that would cite it, with reasons. */

import { call } from "../api.js";
import { decimal, field, folded, h, hue, meter, nothing, plural, select } from "../dom.js";
import { resultCard } from "../hits.js";
import { panel } from "../panel.js";
import { nameOf, wordsOf } from "../text.js";

const KINDS = [["RecommendAuthors", "Authors"], ["RecommendCitations", "Citing papers"]];
const EXAMPLES = [
  {
    label: "A parser",
    values: {
      kind: "RecommendAuthors",
      title: "A parser for free word order languages",
      abstract: "We describe a dependency parser for languages whose word order is free, and evaluate it on Czech and Latvian.",
    },
  },
  {
    label: "Who would cite it: word senses",
    values: {
      kind: "RecommendCitations",
      title: "Word sense disambiguation without labelled data",
      abstract: "Senses are induced from context vectors of raw text and evaluated against WordNet.",
    },
  },
];

export async function open(root) {
  return panel(root, {
    lede: "From title and abstract: authors that fit a paper, or papers that would cite it, each with the reason.",
    controls: [
      field("Title", h("input", { name: "title", required: true, autocomplete: "off" })),
      field("Abstract (optional)", h("textarea", { name: "abstract", rows: 4 })),
      h(
        "div",
        { class: "columns" },
        field("Recommend", select("kind", KINDS)),
        field("Results", select("top_k", [["5", "5"], ["10", "10"], ["20", "20"]], "10")),
        field("Exclude (optional)", h("input", { name: "excluded", autocomplete: "off" }), "Names or ids, separated by semicolons, for conflicts of interest."),
      ),
    ],
    action: "Recommend",
    examples: EXAMPLES,
    ask: (values, signal) => call(`RecommendationService/${values.kind}`, request(values), signal),
    show: (answer) => show(answer.results?.[0]?.candidates ?? []),
  });
}

function request({ title, abstract, excluded, top_k }) {
  const excludedIds = excluded.split(";").map((name) => name.trim()).filter(Boolean);
  return { papers: [{ title, abstract, excludedIds }], options: { topK: Number(top_k), evidence: true } };
}

function show(candidates) {
  if (!candidates.length) return { nodes: [nothing("No candidate", h("p", {}, "Exclude fewer candidates, or give a longer abstract."))], status: "" };
  return { nodes: [h("ol", { class: "hits" }, candidates.map(candidateCard))], status: `${plural(candidates.length, "candidate")}, best first` };
}

function candidateCard(candidate) {
  const { facet = 0, nearestWords = [], nearestPapers = [] } = candidate.evidence ?? {};
  const papers = nearestPapers.map((paper) => h("li", {}, paper.title || paper.id, h("span", { class: "number" }, ` ${paper.id}, cosine ${decimal(paper.cosine)}`)));
  return resultCard(
    candidate.name || candidate.id,
    meter(candidate.score, `score ${decimal(candidate.score)}`),
    nearestWords.length > 0 && h("p", { class: hue(facet), title: wordsOf(nearestWords) }, h("span", { class: "swatch" }), "Best facet of the paper: ", h("em", {}, nameOf(nearestWords))),
    papers.length > 0 && folded(`Closest work (${papers.length})`, h("ul", {}, papers)),
    h("span", { class: "scores" }, `facets ${decimal(candidate.facetScore)} \u00b7 documents ${decimal(candidate.documentScore)}`),
  );
}
