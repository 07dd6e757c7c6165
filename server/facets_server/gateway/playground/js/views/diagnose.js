/** Diagnosis of a collection: duplicates, hubs and, if questions are given, the recall of its index. */

import { call, sentence } from "../api.js";
import { card, count, decimal, field, h, percent, plural, table } from "../dom.js";
import { panel } from "../panel.js";
import { collectionField, withoutCollections } from "../catalog.js";

const MOST_QUERIES = 1_000;

export async function open(root) {
  const collection = await collectionField();
  if (collection.isNone) return withoutCollections(root);
  return panel(root, {
    lede: "Finds duplicates and hubs among the vectors of a collection. With questions, it also measures the recall of the index.",
    controls: [
      h("div", { class: "columns" }, collection.element),
      field("Questions, one a line (may be empty)", h("textarea", { name: "queries", rows: 5 }), `At most ${count(MOST_QUERIES)}. Use real questions: sentences of the documents give too good a result.`),
    ],
    action: "Diagnose",
    ask: (values, signal) =>
      call("CollectionService/DiagnoseCollection", { name: values.c, queries: values.queries.split("\n").map((line) => line.trim()).filter(Boolean) }, signal),
    show,
  });
}

function show(report) {
  const vectors = report.vectors ?? {};
  const seen = Number(report.numPartsSeen ?? 0) < Number(report.numParts ?? 0) ? `, a random sample of ${count(report.numPartsSeen)} examined` : "";
  const findings = (vectors.findings ?? []).map((finding) => h("li", {}, sentence(finding)));
  const nodes = [card("Findings", h("ul", {}, findings)), card("Vectors", vectorTable(vectors))];
  if (report.indexKind) nodes.push(card("Recall of the index", ...recall(report)));
  return { nodes, status: `${plural(report.numDocuments, "document")}, ${plural(report.numParts, "part")}${seen}` };
}

function vectorTable(vectors) {
  const { selfFirst, unreached, largestHub, numQueries } = vectors.cosine ?? {};
  return table([], [
    ["Facets", `${count(vectors.numRows)} of ${vectors.dim ?? 0} dimensions; effective rank ${decimal(vectors.effectiveRank, 0)}`],
    ["Duplicates", count(vectors.numDuplicates)],
    ["Find themselves first", percent(selfFirst)],
    ["Not near others", percent(unreached)],
    ["Largest hub", `near ${count(largestHub)} of ${count(numQueries)}`],
  ]);
}

function recall(answer) {
  const missed = answer.missedIds ?? [];
  return [
    h("p", {}, `The index (${answer.indexKind}) finds ${percent(answer.recall)} of the hits of an exhaustive search.`),
    missed.length > 0 && h("p", { class: "small" }, `Missed most often: ${missed.join(", ")}`),
  ];
}
