/** Search: hits with their confidence, matching facets and the passage that answers. */

import { call } from "../api.js";
import { collectionField, modelChoices, withoutCollections } from "../catalog.js";
import { decimal, field, folded, h, nothing, plural, select, submitButton } from "../dom.js";
import { FilterRows } from "../filters.js";
import { hitList, hitLists, unlikely } from "../hits.js";
import { panel } from "../panel.js";

const NUM_TOPICS = 5;
const MAX_TOPIC_CHARACTERS = 4_000; // at the end of a text, from which topics are suggested
export const MODES = [
  ["", "Facets and words"],
  ["SEARCH_MODE_FACETS", "Facets only"],
  ["SEARCH_MODE_LEXICAL", "Words only"],
];
const COMBINATIONS = [
  ["", "Any question"],
  ["FACET_COMBINATION_SUM", "All parts"],
  ["FACET_COMBINATION_ANY", "Any part"],
];
const EXAMPLES = [
  ["games played with a ball", "games played with a ball"],
  ["how vaccines protect against disease", "how vaccines protect against disease"],
  ["two questions in one", "How do vaccines work? Which insects make honey?"],
  ["nothing here answers this", "renew a parking permit"],
].map(([label, query]) => ({ label, values: { query, collection: "samples" } }));

export function questionField(action) {
  const query = h("input", { name: "query", type: "search", required: true, autocomplete: "off" });
  return h("div", { class: "ask" }, field("Question", query), submitButton(action));
}

export async function open(root) {
  const collection = await collectionField();
  if (collection.isNone) return withoutCollections(root);
  const filters = new FilterRows(collection.control);
  const canSuggest = (await modelChoices("sentences")).length > 0;
  const view = panel(root, {
    lede: "Ask in your own words. Each hit shows the passage that answers, the matching facets and a confidence.",
    controls: [
      questionField("Search"),
      h(
        "div",
        { class: "columns" },
        collection.element,
        field("Ranked by", select("mode", MODES)),
        field("Must answer", select("combine", COMBINATIONS)),
        field("Hits", select("top_k", [["5", "5"], ["10", "10"], ["20", "20"], ["50", "50"]], "10")),
      ),
      filters.element,
    ],
    examples: collection.hasSamples ? EXAMPLES : [],
    ask: (values, signal) => call("DocumentService/Search", request(values, filters), signal),
    show: (answer, values) => show(answer, values, { addFilter, next: canSuggest && next }),
  });

  function addFilter(name, value) {
    filters.add({ field: name, value });
    view.run();
  }

  /** Topics that may follow a text, as questions that another document of the collection answers. */
  async function next(hit) {
    const reply = await call("TopicService/SuggestTopics", { texts: [hit.text.slice(-MAX_TOPIC_CHARACTERS)], numTopics: NUM_TOPICS });
    const topics = (reply.texts?.[0]?.topics ?? []).map((topic) => distinct(topic.words.map((near) => near.word)).join(" "));
    if (!topics.length) return { topics };
    const queries = topics.map((text) => ({ text }));
    const { results = [] } = await call("DocumentService/Search", { collection: collection.control.value, queries, topK: 3, where: filters.message() });
    const ask = (words) => () => view.open({ query: words });
    const isAnswered = (_, index) => results[index]?.hits?.some((other) => other.id !== hit.id && !unlikely(other));
    return { topics: topics.filter(isAnswered).map((words) => ({ words, ask: ask(words) })) };
  }
  await filters.ready;
  return view;
}

/** Words without repeated stems: "cell", not "cell cells cellular". */
function distinct(words) {
  return words.filter((word, index) => !words.slice(0, index).some((other) => other.slice(0, 4) === word.slice(0, 4)));
}

function request({ collection, query, top_k, mode, combine }, filters) {
  return {
    collection,
    queries: [{ text: query }],
    topK: Number(top_k),
    mode: mode || undefined,
    combine: combine || undefined,
    where: filters.message(),
    evidence: true,
    numWords: 4,
  };
}

function show(answer, values, context) {
  const hits = answer.results?.[0]?.hits ?? [];
  const { nodes, likely } = hitLists(hits, context);
  const how = `${answer.exhaustive ? "every document compared" : "index"} (${answer.indexKind}), ${decimal(answer.timings?.totalMs, 0)} ms`;
  if (likely.length) return { nodes, status: `${plural(likely.length, "hit")}; ${how}` };
  const noHits = values.where ? "No document matches these filters and words." : "No document has these words, or the collection is empty.";
  const reason = hits.length ? "No document seems to answer this." : noHits;
  const advice = h("p", {}, reason, " Try other words, another collection, or fewer filters.");
  const closest = hits.length > 0 && folded("Show the closest documents anyway", hitList(hits, context));
  return { nodes: [nothing("Nothing relevant", advice, closest)], status: `Nothing relevant; ${how}` };
}
