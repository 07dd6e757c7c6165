/** Ask: one box, and the documents that answer. */

import { call } from "../api.js";
import { collectionField, modelChoices, withoutCollections } from "../catalog.js";
import { decimal, field, folded, h, nothing, plural, select, submitButton } from "../dom.js";
import { equals, filterOf } from "../filters.js";
import { hitList, isUnlikely, title } from "../hits.js";
import { exampleRow, panel } from "../panel.js";

const NUM_EXAMPLES = 4;
const MAX_EXAMPLE_WORDS = 8;
const MODES = [
  ["", "Facets and words"],
  ["SEARCH_MODE_FACETS", "Facets only"],
  ["SEARCH_MODE_LEXICAL", "Words only"],
];
const COMBINATIONS = [
  ["", "Any question"],
  ["FACET_COMBINATION_SUM", "All parts"],
  ["FACET_COMBINATION_ANY", "Any part"],
];

export async function open(root) {
  const collection = await collectionField();
  if (collection.isNone) return withoutCollections(root);
  const models = await modelChoices("passages", "sentences");
  const box = h("input", { name: "q", type: "search", required: true, autocomplete: "off", "aria-keyshortcuts": "/", placeholder: "Ask in your own words" });
  const question = h("div", { class: "question" }, field("Question", box), submitButton("Ask"));
  const where = h("input", { name: "where", autocomplete: "off", spellcheck: "false" });
  const examples = h("div", {});
  const settings = folded(
    "Settings",
    h(
      "div",
      { class: "columns" },
      field("Answers", select("top_k", [["5", "5"], ["10", "10"], ["20", "20"], ["50", "50"]], "10")),
      field("Ranked by", select("mode", MODES)),
      field("Must answer", select("combine", COMBINATIONS)),
      field("Model", select("model", [["", "The collection's"], ...models])),
    ),
    field("Only documents with", where, "Conditions on their fields, separated by semicolons: topic=sport; year>=2015"),
  );
  const isOnly = () => (collection.element.hidden = collection.control.options?.length === 1);
  isOnly();
  const view = panel(root, {
    title: "Ask your documents",
    controls: [question, h("div", { class: "scope" }, collection.element, settings)],
    ask: (values, signal) => {
      root.classList.remove("fresh");
      isOnly(); // a link may name a collection that does not exist
      examples.remove();
      return call("DocumentService/Search", request(values), signal);
    },
    show: (answer, values) => show(answer, values, addFilter),
  });
  root.classList.add("fresh");
  view.form.after(examples);
  collection.control.addEventListener("change", suggest);

  /** Offers questions that the documents of the collection answer. */
  async function suggest() {
    const name = collection.control.value;
    const { documents = [] } = (name && (await call("DocumentService/ListDocuments", { collection: name, pageSize: NUM_EXAMPLES }).catch(() => null))) || {};
    if (name !== collection.control.value) return;
    const questions = [...new Set(documents.map(exampleOf).filter(Boolean))];
    examples.replaceChildren(exampleRow(questions.map((q) => ({ label: q, values: { q, c: name } })), (values) => view.open(values, "pushState")) ?? "");
  }

  function addFilter(name, value) {
    settings.open = true;
    where.value = [where.value, equals(name, value)].filter(Boolean).join("; ");
    view.run("pushState");
  }

  return {
    ...view,
    open: async (values) => {
      await view.open(values);
      if (values.q) return;
      suggest();
      view.form.elements.q.focus({ preventScroll: true });
    },
  };
}

/** Something to try: what the first sentence says of its subject ("flying insects related to wasps"), or the title. */
function exampleOf(document) {
  const [sentence] = (document.text ?? "").trim().split(/(?<=\p{L}{2}[.?!])\s|\n/u, 1);
  const said = /\s(?:is|are|was|were) (?:an?|the|one of the)?\s*(\S+ \S+ \S+.*)/.exec(sentence)?.[1] ?? "";
  const named = title(document) === document.id ? sentence : title(document);
  const words = (said || named).replace(/[.,;:(].*$/, "").split(/\s+/);
  const short = words.slice(0, MAX_EXAMPLE_WORDS);
  const cut = short.join(" ");
  if (short.length === words.length) return cut.trim();
  return cut.replace(/^(.{12,})\s(?:and|as|at|by|for|from|in|of|on|or|that|to|which|with)(?:\s.*)?$/, "$1").replace(/(\s\S{1,3})+$/, "").trim();
}

function request(values) {
  return {
    collection: values.c,
    queries: [{ text: values.q }],
    topK: Number(values.top_k),
    mode: values.mode || undefined,
    combine: values.combine || undefined,
    model: values.model || undefined,
    where: filterOf(values.where),
    evidence: true,
    numWords: 8,
  };
}

function show(answer, values, addFilter) {
  const hits = answer.results?.[0]?.hits ?? [];
  const [likely, others] = [hits.filter((hit) => !isUnlikely(hit)), hits.filter(isUnlikely)];
  const how = `${decimal(answer.timings?.totalMs, 0)} ms, ${answer.exhaustive ? "every document compared" : `approximate index (${answer.indexKind})`}`;
  if (likely.length) {
    const folder = others.length ? [folded(plural(others.length, "less likely document"), hitList(others, addFilter, likely.length))] : [];
    return { nodes: [hitList(likely, addFilter), ...folder], status: `${plural(likely.length, "answer")} in ${how}` };
  }
  const noHits = values.where ? "No document matches these filters and words." : "No document has these words, or the collection is empty.";
  const reason = hits.length ? `No document in ${values.c} seems to answer this.` : noHits;
  const advice = h("p", {}, reason, values.where ? " Try other words, or fewer filters." : " Try other words, or another collection.");
  const closest = hits.length > 0 && folded("Show the closest documents anyway", hitList(hits, addFilter));
  return { nodes: [nothing("Nothing relevant", advice, closest)], status: `Nothing relevant in ${how}` };
}
