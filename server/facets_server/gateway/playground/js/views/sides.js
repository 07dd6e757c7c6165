/** Answers to one question from two collections, models or rankings, side by side. */

import { call } from "../api.js";
import { collectionField, modelChoices, withoutCollections } from "../catalog.js";
import { decimal, field, h, plural, select } from "../dom.js";
import { hitLists } from "../hits.js";
import { panel, problem } from "../panel.js";
import { MODES, questionField } from "./ask.js";

const TOP_K = 10;

export async function open(root) {
  const [left, right, models] = await Promise.all([collectionField(), collectionField(), modelChoices("passages", "sentences")]);
  if (left.isNone) return withoutCollections(root);
  const side = (name, legend, collection, mode) => {
    collection.control.name = `${name}_collection`;
    return h(
      "fieldset",
      { class: "stack tight" },
      h("legend", {}, legend),
      collection.element,
      field("Ranked by", select(`${name}_mode`, MODES, mode)),
      field("Model", select(`${name}_model`, [["", "Default"], ...models])),
    );
  };
  return panel(root, {
    lede: "One question to two collections, models or rankings. Each hit shows its rank on the other side.",
    controls: [
      questionField("Compare"),
      h("div", { class: "halves" }, side("left", "Left", left, ""), side("right", "Right", right, "SEARCH_MODE_LEXICAL")),
    ],
    ask: (values, signal) => Promise.all(["left", "right"].map((name) => searched(values, name, signal))),
    show,
  });
}

/** The answer of one side, or its error; the other side is shown either way. */
async function searched(values, name, signal) {
  const [collection, mode, model] = ["collection", "mode", "model"].map((part) => values[`${name}_${part}`]);
  const request = { collection, queries: [{ text: values.q }], topK: TOP_K, mode: mode || undefined, model, evidence: true, numWords: 8 };
  try {
    return { collection, answer: await call("DocumentService/Search", request, signal) };
  } catch (error) {
    if (signal.aborted || error.code === "lost") throw error;
    return { collection, error };
  }
}

function show(sides) {
  const hits = sides.map(({ answer }) => answer?.results?.[0]?.hits ?? []);
  const columns = sides.map(({ collection, answer, error }, index) => {
    if (error) return h("section", { class: "stack", "aria-label": collection }, problem(error));
    const note = (hit) => {
      const rank = hits[1 - index].findIndex((other) => other.id === hit.id) + 1;
      return h("span", { class: rank ? "chip small" : "chip small only" }, rank ? `other side: ${rank}` : "only here");
    };
    const { nodes, likely } = hitLists(hits[index], { note });
    return h(
      "section",
      { class: "stack", "aria-label": index ? "Right" : "Left" },
      h("h2", {}, `${collection}: ${plural(likely.length, "hit")}`),
      h("p", { class: "small" }, `${answer.model?.name ?? ""}, ${decimal(answer.timings?.totalMs, 0)} ms`),
      nodes.length ? nodes : h("p", { class: "card nothing" }, "Nothing relevant."),
    );
  });
  const shared = hits[0].filter((hit) => hits[1].some((other) => other.id === hit.id));
  return { nodes: [h("div", { class: "halves sides" }, columns)], status: `${plural(shared.length, "document")} in the top ${TOP_K} of both sides` };
}
