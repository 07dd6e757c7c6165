/** One question to two collections, two models or two ways of ranking, side by side. */

import { call } from "../api.js";
import { decimal, field, h, plural, select } from "../dom.js";
import { folded, hitList, title, unlikely } from "../hits.js";
import { panel, problem } from "../panel.js";
import { collectionField, listModels, withoutCollections } from "../served.js";
import { MODES } from "./search.js";

const TOP_K = 10;

/** Fills `root` with the view. */
export async function open(root) {
  const [left, right, models] = await Promise.all([collectionField(), collectionField(), listModels()]);
  if (left.count === 0) return withoutCollections(root, "Side by side");
  const choices = [["", "Its own"], ...models.filter(({ task }) => ["passages", "sentences"].includes(task)).map(({ name }) => [name, name])];
  const side = (name, collection, legend) => {
    collection.control.name = `${name}_collection`;
    return h(
      "fieldset",
      { class: "stack tight" },
      h("legend", {}, legend),
      collection.element,
      field("Ranked by", select(`${name}_mode`, MODES, name === "right" ? "SEARCH_MODE_LEXICAL" : "")),
      field("Model", select(`${name}_model`, choices)),
    );
  };
  const query = h("input", { name: "query", type: "search", required: true, autocomplete: "off" });
  return panel(root, {
    name: "sides",
    title: "Side by side",
    lede: "The same question to two collections, models or ways of ranking; each answer says where the other side has it.",
    controls: [
      h("div", { class: "ask" }, field("Question", query), h("button", { type: "submit", class: "primary" }, "Compare")),
      h("div", { class: "halves" }, side("left", left, "Left"), side("right", right, "Right")),
    ],
    examples: left.hasSamples ? [{ label: "facets and words, words alone", values: { query: "how vaccines protect against disease", left_collection: "samples", right_collection: "samples" } }] : [],
    ask: (values, signal) => Promise.all(["left", "right"].map((name) => asked(values, name, signal))),
    show,
  });
}

/** What one side says; its refusal does not take the other's answer away. */
async function asked(values, name, signal) {
  const [collection, mode, model] = ["collection", "mode", "model"].map((part) => values[`${name}_${part}`]);
  const request = { collection, queries: [{ text: values.query }], topK: TOP_K, mode: mode || undefined, model, evidence: true, numWords: 3 };
  try {
    return { name: collection, answer: await call("DocumentService/Search", request, signal) };
  } catch (error) {
    if (signal.aborted || error.code === "lost") throw error;
    return { name: collection, error };
  }
}

function show(sides) {
  const found = sides.map(({ answer }) => answer?.results?.[0]?.hits ?? []);
  const columns = sides.map(({ name, answer, error }, place) => {
    if (error) return h("section", { class: "stack", "aria-label": name }, problem(error));
    const other = found[1 - place];
    const note = (hit) => {
      const rank = other.findIndex((one) => one.id === hit.id) + 1;
      return h("span", { class: rank ? "chip small" : "chip small only" }, rank ? `other side: ${rank}` : "only here");
    };
    const how = `${answer.model?.name ?? ""}, ${decimal(answer.timings?.totalMs ?? 0, 0)} ms`;
    const [surely, hardly] = [false, true].map((is) => found[place].filter((hit) => unlikely(hit) === is));
    const list = surely.length ? hitList(surely, { note }, 0) : h("p", { class: "card nothing" }, "Nothing relevant.");
    const rest = hardly.length ? folded(plural(hardly.length, "less likely document"), hitList(hardly, { note }, surely.length)) : null;
    return h("section", { class: "stack", "aria-label": place ? "Right" : "Left" }, h("h2", {}, `${name}: ${plural(surely.length, "answer")}`), h("p", { class: "small" }, how), list, rest);
  });
  const both = found[0].filter((hit) => found[1].some((one) => one.id === hit.id));
  const first = both[0] ? `, first ${title(both[0])}` : "";
  return { nodes: [h("div", { class: "halves sides" }, columns)], status: `${plural(both.length, "document is", "documents are")} among the first ${TOP_K} of both sides${first}` };
}
