/** Summaries: the sentences that cover a text, and how much each covers. */

import { call } from "../api.js";
import { card, field, h, hue, percent, plural, select } from "../dom.js";
import { panel } from "../panel.js";
import { modelChoices } from "../catalog.js";
import { marked, Text } from "../text.js";

const UNITS = [["sentences", "sentences"], ["words", "words at most"]];
const OCTOPUS =
  "An octopus has three hearts, nine brains and blue blood. Two hearts pump blood to the gills, while a third sends it " +
  "to the rest of the body. The animal lives on the sea floor, where it hides in dens during the day. It hunts at night " +
  "and eats crabs, clams and small fish. A beak, the only hard part of the body, cracks the shells. When it is " +
  "threatened, it squirts ink and changes its colour within a second. Thousands of cells in the skin hold pigments " +
  "that muscles open and close. Octopuses open jars, find their way through mazes and remember people. A female lays " +
  "tens of thousands of eggs and guards them for months without eating. She dies soon after they hatch.";
const EXAMPLES = [
  { label: "The octopus", values: { text: OCTOPUS, size: "3", unit: "sentences", query: "" } },
  { label: "In 40 words", values: { text: OCTOPUS, size: "40", unit: "words", query: "" } },
  { label: "About its children", values: { text: OCTOPUS, size: "2", unit: "sentences", query: "eggs and young" } },
];

export async function open(root) {
  const models = await modelChoices("sentences", "passages");
  return panel(root, {
    lede: "The sentences that cover most of a text, and what each of them adds.",
    controls: [
      field("Text", h("textarea", { name: "text", rows: 7, required: true })),
      h(
        "div",
        { class: "columns" },
        field("Length", h("input", { name: "size", type: "number", min: 1, max: 10000, value: 3, required: true })),
        field("In", select("unit", UNITS)),
        field("About (optional)", h("input", { name: "query", autocomplete: "off" })),
        field("Model", select("model", models)),
      ),
    ],
    action: "Summarize",
    examples: EXAMPLES,
    ask: (values, signal) => call("SummarizationService/Summarize", request(values), signal),
    show: (answer, values) => show(answer.summaries[0], values),
  });
}

function request(values) {
  const budget = values.unit === "words" ? { maxWords: Number(values.size) } : { numSentences: Number(values.size) };
  return { documents: [{ text: values.text }], model: values.model, query: values.query, ...budget };
}

function show(summary, values) {
  const text = new Text(values.text);
  const sentences = (summary.sentences ?? []).map((sentence) => ({ selection: 0, start: 0, gain: 0, ...sentence }));
  const picked = sentences.toSorted((first, second) => first.selection - second.selection);
  const covered = picked.reduce((sum, sentence) => sum + sentence.gain, 0);
  const marks = sentences.map(({ start, end, selection }) => ({ start, end, kind: `picked ${hue(selection)}`, whole: true }));
  const status =
    `${plural(sentences.length, "sentence")} of ${summary.numSentencesInDocument}, ` +
    `${plural(summary.numWords ?? 0, "word")}, cover ${percent(covered)} of the text` +
    (summary.hasProse ? "" : "; the text has no prose: these are list items, headings and similar");
  return {
    nodes: [
      card(`${percent(covered)} covered`, bar(picked)),
      h("ol", { class: "hits" }, sentences.map(sentenceItem)),
      card("In the text", h("p", { class: "passage" }, marked(text, marks))),
    ],
    status,
  };
}

/** One segment per sentence in the order of selection; the rest is not covered. */
function bar(picked) {
  const parts = picked.map((sentence) => {
    const part = h("span", { class: `part ${hue(sentence.selection)}` });
    part.style.width = `${(sentence.gain * 100).toFixed(2)}%`;
    return part;
  });
  return h("div", { class: "coverage", "aria-hidden": "true" }, parts);
}

function sentenceItem(sentence) {
  return h(
    "li",
    { class: `card sentence ${hue(sentence.selection)}` },
    h("span", { class: "swatch" }),
    h("span", {}, sentence.text),
    h("span", { class: "small number" }, `selected as number ${sentence.selection + 1}, adds ${percent(sentence.gain)}`),
  );
}
