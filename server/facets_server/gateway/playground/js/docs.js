/** The routes over HTTP, made of the server's OpenAPI description: read, searched, tried. */

import { hasKey, setKey } from "./api.js";
import { field, h, plural } from "./dom.js";

const DEPTH = 3; // of messages in messages that an example fills in
const OTHER = "OpenAI, TEI, Cohere, probes";

let schemas = {};

async function start() {
  const root = document.getElementById("routes");
  try {
    const description = await (await fetch("../openapi.json")).json();
    schemas = description.components.schemas;
    root.replaceChildren(...page(routesOf(description.paths)));
  } catch {
    root.replaceChildren(h("div", { class: "problem", role: "alert" }, "The description could not be read. Reload the page."));
  }
}

function routesOf(paths) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation, group: operation.tags?.[0] ?? OTHER })),
  );
}

function page(routes) {
  const told = h("p", { class: "status", role: "status" });
  const key = h("input", { type: "password", autocomplete: "off", spellcheck: "false", placeholder: hasKey() ? "set" : "none" });
  key.addEventListener("change", () => setKey(key.value));
  const wanted = h("input", { type: "search", autocomplete: "off" });
  const list = routes.map((route) => ({ route, element: routeElement(route) }));
  const groups = [...new Set(routes.map((route) => route.group))].map((name) => {
    const mine = list.filter(({ route }) => route.group === name);
    return { mine, element: h("section", { class: "stack tight", "aria-label": name }, h("h2", {}, name), mine.map(({ element }) => element)) };
  });
  const filter = () => {
    const words = wanted.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { route, element } of list) {
      const said = `${route.path} ${route.operation.description}`.toLowerCase();
      element.hidden = !words.every((word) => said.includes(word));
    }
    for (const { mine, element } of groups) element.hidden = mine.every(({ element: one }) => one.hidden);
    told.textContent = plural(list.filter(({ element }) => !element.hidden).length, "route");
  };
  wanted.addEventListener("input", filter);
  filter();
  const controls = h("div", { class: "card columns" }, field("Find a route", wanted), field("API key, if the server asks for one", key));
  return [controls, told, h("div", { class: "stack" }, groups.map(({ element }) => element))];
}

function routeElement(route) {
  const { path, method, operation } = route;
  const details = h(
    "details",
    { class: "card route" },
    h("summary", {}, h("strong", { class: "method" }, method.toUpperCase()), h("code", {}, path), h("span", { class: "small" }, operation.summary ?? operation.description)),
  );
  details.addEventListener("toggle", () => details.open && details.childElementCount === 1 && details.append(...inside(route)));
  return details;
}

function inside({ path, method, operation }) {
  const [type, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const [answerType, answer] = Object.entries(operation.responses["200"].content ?? {})[0] ?? [];
  return [
    h("p", {}, operation.description),
    body && h("div", {}, h("h3", {}, `Request, ${type}`), fieldsTable(body.schema)),
    answer && h("div", {}, h("h3", {}, `Answer, ${answerType}`), fieldsTable(answer.schema)),
    type !== "application/x-ndjson" && tryForm({ path, method, schema: body?.schema }),
  ].filter(Boolean);
}

function resolved(schema) {
  return schema.$ref ? schemas[schema.$ref.split("/").at(-1)] : schema;
}

function fieldsTable(schema) {
  const properties = Object.entries(resolved(schema).properties ?? {});
  if (!properties.length) return h("p", { class: "small" }, typeName(schema));
  const rows = properties.map(([name, one]) =>
    h("tr", {}, h("th", { scope: "row" }, h("code", {}, name)), h("td", {}, typeName(one)), h("td", {}, one.description ?? resolved(one).description ?? "")),
  );
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": typeName(schema) }, h("table", {}, rows));
}

function typeName(schema) {
  if (schema.$ref) {
    const name = schema.$ref.split("/").at(-1);
    return resolved(schema).enum ? resolved(schema).enum.join(", ") : name;
  }
  if (schema.type === "array") return `list of ${typeName(schema.items ?? {})}`;
  if (schema.anyOf) return schema.anyOf.map(typeName).join(" or ");
  return [schema.type ?? schema.const ?? "any"].flat().join(" or ");
}

/** A value of a schema, so that one can begin to type. */
function sample(schema, depth = 0) {
  const one = resolved(schema);
  if (one.const !== undefined) return one.const;
  if (one.enum) return one.enum[0];
  if (one.anyOf) return sample(one.anyOf[0], depth);
  if (one.type === "array") return depth < DEPTH ? [sample(one.items ?? {}, depth + 1)] : [];
  if (one.type === "object") {
    const wanted = Object.entries(one.properties ?? {}).filter(([name, part]) => one.required?.includes(name) ?? !part.$ref);
    return depth < DEPTH ? Object.fromEntries(wanted.map(([name, part]) => [name, sample(part, depth + 1)])) : {};
  }
  const type = [one.type].flat()[0];
  return type === "integer" || type === "number" ? 0 : type === "boolean" ? false : "";
}

function tryForm({ path, method, schema }) {
  const body = schema && h("textarea", { rows: 6, spellcheck: "false", class: "code" });
  if (body) body.value = JSON.stringify(sample(schema), null, 2);
  const status = h("p", { class: "status", role: "status" });
  const answer = h("pre", { hidden: true, tabindex: 0, "aria-label": "The answer" });
  const form = h("form", { class: "stack tight" }, body && field("Try it", body), h("div", {}, h("button", { type: "submit", class: "primary" }, "Send")), status, answer);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    status.textContent = "Asking the server";
    const headers = { "Content-Type": "application/json" };
    const key = sessionStorage.getItem("facets-key");
    if (key) headers.Authorization = `Bearer ${key}`;
    try {
      const reply = await fetch(path, { method: method.toUpperCase(), headers, body: body?.value });
      status.textContent = `${reply.status} ${reply.statusText}`;
      const text = await reply.text();
      answer.hidden = false;
      answer.textContent = indented(text);
    } catch {
      status.textContent = "The server does not answer.";
    }
  });
  return form;
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

start();
