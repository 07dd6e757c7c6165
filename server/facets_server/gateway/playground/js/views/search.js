/** Search: which documents answer, how sure that is, which facets met, and where. */

import { call } from "../api.js";
import { decimal, field, h, plural, select } from "../dom.js";
import { FilterRows, fieldsOf } from "../filters.js";
import { folded, hitList, unlikely } from "../hits.js";
import { intro } from "../intro.js";
import { panel } from "../panel.js";
import { collectionField, modelChoices, withoutCollections } from "../served.js";

const SAMPLED = 100;
const NUM_TOPICS = 5;
const LONGEST_TOLD = 4_000; // characters of a text, from its end, that topics come from
export const MODES = [
  ["", "Facets and words"],
  ["SEARCH_MODE_FACETS", "Facets only"],
  ["SEARCH_MODE_LEXICAL", "Words only"],
];
const COMBINATIONS = [
  ["", "Any of the questions"],
  ["FACET_COMBINATION_SUM", "All of the parts"],
  ["FACET_COMBINATION_ANY", "Any of the parts"],
];
const EXAMPLES = [
  ["games played with a ball", "games played with a ball"],
  ["how vaccines protect against disease", "how vaccines protect against disease"],
  ["two questions in one", "How do vaccines work? Which insects make honey?"],
  ["nothing here answers this", "renew a parking permit"],
].map(([label, query]) => ({ label, values: { query, collection: "samples" } }));

/** Fills `root` with the view. */
export async function open(root) {
  const collection = await collectionField();
  if (collection.count === 0) return withoutCollections(root, "Search");
  const filters = new FilterRows();
  const canSuggest = (await modelChoices("sentences")).length > 0;
  const query = h("input", { name: "query", type: "search", required: true, autocomplete: "off" });
  const view = panel(root, {
    name: "search",
    title: "Search",
    lede: "Ask in your own words. Each answer shows the passage, the facets that met and how sure the server is.",
    controls: [
      h("div", { class: "ask" }, field("Question", query), h("button", { type: "submit", class: "primary" }, "Search")),
      h(
        "div",
        { class: "columns" },
        collection.element,
        field("Ranked by", select("mode", MODES)),
        field("An answer meets", select("combine", COMBINATIONS)),
        field("Answers", select("top_k", [["5", "5"], ["10", "10"], ["20", "20"], ["50", "50"]], "10")),
      ),
      filters.element,
    ],
    examples: collection.hasSamples ? EXAMPLES : [],
    before: intro,
    ask: (values, signal) => call("DocumentService/Search", request(values, filters), signal),
    show: (answer, values) => show(answer, { values, addFilter, next: canSuggest && next }),
  });
  const learn = () => learnFields(collection.control.value, filters);
  collection.control.addEventListener("change", learn);
  collection.control.addEventListener("filled", learn);

  function addFilter(name, value) {
    filters.add({ field: name, value });
    view.run();
  }
  /** Topics that a text may go on with, as questions of their own: those that another document here answers. */
  async function next(hit) {
    const reply = await call("TopicService/SuggestTopics", { texts: [hit.text.slice(-LONGEST_TOLD)], numTopics: NUM_TOPICS });
    const topics = (reply.texts?.[0]?.topics ?? []).map((topic) => unlike(topic.words.map((near) => near.word)).join(" "));
    if (!topics.length) return { topics };
    const asked = { collection: collection.control.value, queries: topics.map((text) => ({ text })), topK: 3, where: filters.message() };
    const { results = [] } = await call("DocumentService/Search", asked);
    const ask = (words) => () => {
      query.value = words;
      view.run();
    };
    const leads = (_, place) => results[place]?.hits?.some((other) => other.id !== hit.id && !unlikely(other));
    return { topics: topics.filter(leads).map((words) => ({ words, ask: ask(words) })) };
  }
  await learn();
  return view;
}

/** Words without those that begin as one before them does: "cell", not "cell cells cellular". */
function unlike(words) {
  return words.filter((word, place) => !words.slice(0, place).some((other) => other.slice(0, 4) === word.slice(0, 4)));
}

/** Offers the fields that some of the documents have. */
export async function learnFields(collection, filters) {
  if (!collection) return;
  try {
    const page = await call("DocumentService/ListDocuments", { collection, pageSize: SAMPLED });
    filters.fields = fieldsOf((page.documents ?? []).map((document) => document.payload));
  } catch {
    filters.fields = new Map(); // only suggestions are lost; the search itself says what is wrong
  }
}

function request(values, filters) {
  return {
    collection: values.collection,
    queries: [{ text: values.query }],
    topK: Number(values.top_k),
    mode: values.mode || undefined,
    combine: values.combine || undefined,
    where: filters.message(),
    evidence: true,
    numWords: 4,
  };
}

function show(answer, context) {
  const hits = answer.results?.[0]?.hits ?? [];
  const surely = hits.filter((hit) => !unlikely(hit));
  const hardly = hits.filter(unlikely);
  const how = `${answer.exhaustive ? "every document compared" : "index"} (${answer.indexKind}), ${timing(answer)}`;
  if (hits.length === 0) return { nodes: [nothing(context.values.where ? "No document matches these filters and words." : "No document has these words, or there is none yet.", [])], status: how };
  if (surely.length === 0) {
    const text = "Nothing here seems to answer this.";
    return { nodes: [nothing(text, hitList(hardly, context, 0))], status: `Nothing relevant; ${how}` };
  }
  const nodes = [hitList(surely, context, 0)];
  if (hardly.length) nodes.push(folded(`${plural(hardly.length, "less likely document")}`, hitList(hardly, context, surely.length)));
  return { nodes, status: `${plural(surely.length, "answer")}; ${how}` };
}

function timing(answer) {
  return `${decimal(answer.timings?.totalMs ?? 0, 0)} ms`;
}

function nothing(sentence, list) {
  return h(
    "div",
    { class: "nothing card" },
    h("h2", {}, "Nothing relevant"),
    h("p", {}, sentence, " Ask in other words, choose another collection, or remove a filter."),
    list.length !== 0 && folded("Show the closest documents anyway", list),
  );
}
