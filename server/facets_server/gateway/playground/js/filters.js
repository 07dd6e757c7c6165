/** Filters on payloads: form rows, and the Filter message that they make. */

import { button, field, h, select, uniqueId } from "./dom.js";

const MAX_VALUES = 40;
const TESTS = [
  ["is", "is"],
  ["is_not", "is not"],
  ["at_least", "is at least"],
  ["at_most", "is at most"],
  ["contains", "contains the item"],
  ["exists", "exists"],
  ["missing", "is missing"],
];
const WITHOUT_VALUE = new Set(["exists", "missing"]);

/**
 * Fields of some payloads with the type and samples of their values.
 * @param {Object[]} payloads
 * @returns {Map<string, {kind: string, values: string[]}>}
 */
export function fieldsOf(payloads) {
  const fields = new Map();
  for (const payload of payloads) collect(fields, payload ?? {}, "");
  for (const [name, { kind, values }] of fields) fields.set(name, { kind, values: [...values].sort() });
  return fields;
}

function collect(fields, payload, prefix) {
  for (const [name, value] of Object.entries(payload)) {
    const path = prefix + name;
    if (value !== null && typeof value === "object" && !Array.isArray(value)) {
      collect(fields, value, `${path}.`);
      continue;
    }
    const samples = Array.isArray(value) ? value : [value];
    const known = fields.get(path) ?? { kind: typeof (samples[0] ?? ""), values: new Set() };
    for (const sample of samples) if (known.values.size < MAX_VALUES) known.values.add(String(sample));
    fields.set(path, known);
  }
}

/**
 * The Filter message of some rows; undefined if there are none. Values get the type of the field in the sampled
 * documents, because "1" never equals 1.
 * @param {{field: string, test: string, value: string}[]} rows
 * @param {Map<string, {kind: string}>} fields
 */
export function filterMessage(rows, fields) {
  const filters = rows.filter((row) => row.field.trim()).map((row) => condition(row, fields.get(row.field.trim())));
  return filters.length ? { allOf: { filters } } : undefined;
}

function condition(row, known) {
  const name = row.field.trim();
  const value = typed(row.value.trim(), known?.kind);
  const range = typeof value === "number" ? "range" : "stringRange";
  const tests = {
    is: { equals: value },
    is_not: { equals: value },
    at_least: { [range]: { gte: value } },
    at_most: { [range]: { lte: value } },
    contains: { contains: value },
    exists: { exists: true },
    missing: { exists: false },
  };
  const filter = { field: { field: name, ...tests[row.test] } };
  return row.test === "is_not" ? { noneOf: { filters: [filter] } } : filter;
}

function typed(text, kind) {
  if (kind === "boolean") return text === "true";
  const isNumber = text !== "" && Number.isFinite(Number(text));
  return isNumber && kind !== "string" ? Number(text) : text;
}

/** Filter rows of a form. A hidden control holds their state, so that it is part of the address. */
export class FilterRows {
  constructor(fields = new Map()) {
    this.fields = fields;
    this.state = h("input", { type: "hidden", name: "where", on: { filled: () => this.#draw(this.rows()) } });
    this.list = h("div", { class: "filters" });
    this.element = h("div", { class: "stack" }, this.state, this.list, h("div", {}, button("Add a filter", () => this.add({}))));
  }

  rows() {
    try {
      const rows = JSON.parse(this.state.value || "[]");
      return Array.isArray(rows) ? rows.map((row) => ({ field: "", test: "is", value: "", ...row })) : [];
    } catch {
      return []; // invalid address
    }
  }

  message() {
    return filterMessage(this.rows(), this.fields);
  }

  /** Adds a row; focuses it if it has no field yet. */
  add(row) {
    this.#draw([...this.rows(), { field: "", test: "is", value: "", ...row }]);
    this.#save();
    if (!row.field) this.list.lastElementChild.querySelector("input").focus();
  }

  #save() {
    const rows = [...this.list.children].map((row) =>
      Object.fromEntries([...row.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part.value])),
    );
    this.state.value = rows.length ? JSON.stringify(rows) : "";
  }

  #draw(rows) {
    this.list.replaceChildren(...rows.map((row) => this.#row(row)));
  }

  #row(row) {
    const names = h("datalist", { id: uniqueId("names") });
    names.append(...[...this.fields.keys()].map((name) => h("option", { value: name })));
    const values = h("datalist", { id: uniqueId("values") });
    const name = h("input", { value: row.field, list: names.id, data: { part: "field" }, autocomplete: "off" });
    const test = select("", TESTS, row.test);
    test.removeAttribute("name");
    test.dataset.part = "test";
    const value = h("input", { value: row.value, list: values.id, data: { part: "value" }, autocomplete: "off" });
    const changed = () => {
      value.disabled = WITHOUT_VALUE.has(test.value);
      const known = this.fields.get(name.value.trim())?.values ?? [];
      values.replaceChildren(...known.map((choice) => h("option", { value: choice })));
      this.#save();
    };
    const remove = () => {
      element.remove();
      this.#save();
    };
    const element = h(
      "div",
      { class: "filter", role: "group", "aria-label": "Filter", on: { input: changed } },
      field("Field", name),
      field("Test", test),
      field("Value", value),
      button("Remove", remove, { "aria-label": "Remove this filter" }),
      names,
      values,
    );
    value.disabled = WITHOUT_VALUE.has(row.test);
    queueMicrotask(() => element.isConnected && changed());
    return element;
  }
}
