/** Filters on payloads: form rows, and the Filter message that they make. */

import { call } from "./api.js";
import { button, field, h, select, uniqueId } from "./dom.js";

const NUM_SAMPLED = 100; // documents sampled for payload fields to offer
const MAX_VALUES = 40;
// Test -> its label, and the condition that it makes of a value.
const TESTS = {
  is: ["is", (value) => ({ equals: value })],
  is_not: ["is not", (value) => ({ equals: value })],
  at_least: ["is at least", (value) => ({ [rangeOf(value)]: { gte: value } })],
  at_most: ["is at most", (value) => ({ [rangeOf(value)]: { lte: value } })],
  contains: ["contains the item", (value) => ({ contains: value })],
  exists: ["exists", () => ({ exists: true })],
  missing: ["is missing", () => ({ exists: false })],
};

function rangeOf(value) {
  return typeof value === "number" ? "range" : "stringRange";
}

/** Names of the payload fields of some documents, each with samples of its values. */
function fieldsOf(documents) {
  const fields = new Map();
  const collect = (payload, prefix) => {
    for (const [name, value] of Object.entries(payload)) {
      const path = prefix + (name.includes(".") ? `"${name}"` : name);
      if (value !== null && typeof value === "object" && !Array.isArray(value)) collect(value, `${path}.`);
      else fields.set(path, (fields.get(path) ?? new Set()).union(new Set([value].flat())));
    }
  };
  for (const { payload = {} } of documents) collect(payload, "");
  return fields;
}

/** Filter rows of a form, which offer the payload fields of the collection's documents. A hidden control holds their state, so that it is part of the address. */
export class FilterRows {
  #fields = new Map();

  constructor(collection) {
    this.state = h("input", { type: "hidden", name: "where", on: { filled: () => this.#draw(this.#rows()) } });
    this.list = h("div", { class: "filters" });
    this.element = h("div", { class: "stack" }, this.state, this.list, h("div", {}, button("Add a filter", () => this.add({}))));
    const learn = async () => {
      if (!collection.value) return;
      // Filters are only suggestions; the search itself reports the error.
      const page = await call("DocumentService/ListDocuments", { collection: collection.value, pageSize: NUM_SAMPLED }).catch(() => ({}));
      this.#fields = fieldsOf(page.documents ?? []);
    };
    for (const event of ["change", "filled"]) collection.addEventListener(event, learn);
    this.ready = learn();
  }

  /** The Filter message; undefined without filters. */
  message() {
    const filters = this.#rows().filter((row) => row.field).map((row) => this.#condition(row));
    return filters.length ? { allOf: { filters } } : undefined;
  }

  /** Adds a row; focuses it if it has no field yet. */
  add(row) {
    this.#draw([...this.#rows(), row]);
    this.#save();
    if (!row.field) this.list.lastElementChild.querySelector("input").focus();
  }

  /** A value gets the type of the field in the sampled documents, because "1" never equals 1. */
  #condition({ field: name, test = "is", value: text = "" }) {
    const kind = typeof this.#fields.get(name)?.values().next().value;
    const isNumber = text !== "" && Number.isFinite(Number(text)) && kind !== "string";
    const value = kind === "boolean" ? text === "true" : isNumber ? Number(text) : text;
    const filter = { field: { field: name, ...TESTS[test]?.[1](value) } };
    return test === "is_not" ? { noneOf: { filters: [filter] } } : filter;
  }

  #rows() {
    try {
      return [JSON.parse(this.state.value || "[]")].flat().filter(Boolean);
    } catch {
      return []; // invalid address
    }
  }

  #save() {
    const parts = (row) => [...row.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part.value.trim()]);
    const rows = [...this.list.children].map((row) => Object.fromEntries(parts(row)));
    this.state.value = rows.length ? JSON.stringify(rows) : "";
  }

  #draw(rows) {
    this.list.replaceChildren(...rows.map((row) => this.#row(row)));
  }

  #row(row) {
    const options = (id, values) => h("datalist", { id }, [...values].map((value) => h("option", { value })));
    const names = options(uniqueId("names"), this.#fields.keys());
    const values = options(uniqueId("values"), []);
    const name = h("input", { value: row.field, list: names.id, data: { part: "field" }, autocomplete: "off" });
    const test = select("", Object.entries(TESTS).map(([choice, [label]]) => [choice, label]), row.test);
    test.dataset.part = "test";
    const value = h("input", { value: row.value, list: values.id, data: { part: "value" }, autocomplete: "off" });
    const suggest = () => {
      value.disabled = ["exists", "missing"].includes(test.value);
      values.replaceChildren(...options("", [...(this.#fields.get(name.value.trim()) ?? [])].slice(0, MAX_VALUES).sort()).children);
    };
    const remove = () => {
      element.remove();
      this.#save();
    };
    const input = () => {
      suggest();
      this.#save();
    };
    const element = h(
      "div",
      { class: "filter", role: "group", "aria-label": "Filter", on: { input } },
      [field("Field", name), field("Test", test), field("Value", value)],
      [button("Remove", remove, { "aria-label": "Remove this filter" }), names, values],
    );
    suggest();
    return element;
  }
}
