/** The HTTP routes of the server's OpenAPI description, with search and a form to try each one. */

import { storedKey } from "../api.js";
import { field, h, plural, table } from "../dom.js";

const MAX_DEPTH = 3; // of nested messages in examples
const OTHER = "OpenAI, TEI, Cohere, probes";

let schemas = {};

/** Fills `root` with the view. */
export async function open(root) {
  const description = await (await fetch("openapi.json")).json();
  schemas = description.components.schemas;
  const routes = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const route = { path, method, operation };
      return { group: operation.tags?.[0] ?? OTHER, text: `${path} ${operation.description}`.toLowerCase(), element: routeElement(route) };
    }),
  );
  const sections = Object.entries(Object.groupBy(routes, ({ group }) => group)).map(([name, members]) => ({
    members,
    element: h("section", { class: "stack tight", "aria-label": name }, h("h2", {}, name), members.map(({ element }) => element)),
  }));
  const status = h("p", { class: "status", role: "status" });
  const search = h("input", { type: "search", autocomplete: "off", on: { input: filter } });

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { text, element } of routes) element.hidden = !words.every((word) => text.includes(word));
    for (const { members, element } of sections) element.hidden = members.every((member) => member.element.hidden);
    status.textContent = plural(routes.filter(({ element }) => !element.hidden).length, "route");
  }

  filter();
  const lede = h("p", { class: "lede" }, "Every route of this server, with a form to try it. Made from ", h("a", { href: "openapi.json" }, "openapi.json"), ".");
  root.replaceChildren(h("h1", {}, "HTTP"), lede, h("div", { class: "card" }, field("Find a route", search)), status, h("div", { class: "stack" }, sections.map(({ element }) => element)));
  return { open: () => {}, close: () => {} };
}

function routeElement(route) {
  const { path, method, operation } = route;
  const details = h(
    "details",
    { class: "card route" },
    h("summary", {}, h("strong", { class: "method" }, method.toUpperCase()), h("code", {}, path), h("span", { class: "small" }, operation.summary ?? operation.description)),
  );
  details.addEventListener("toggle", () => details.open && details.childElementCount === 1 && details.append(...routeContent(route)));
  return details;
}

function routeContent({ path, method, operation }) {
  const [type, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const [answerType, answer] = Object.entries(operation.responses["200"].content ?? {})[0] ?? [];
  return [
    h("p", {}, operation.description),
    body && h("div", {}, h("h3", {}, `Request, ${type}`), fieldsTable(body.schema)),
    answer && h("div", {}, h("h3", {}, `Reply, ${answerType}`), fieldsTable(answer.schema)),
    type !== "application/x-ndjson" && tryForm({ path, method, schema: body?.schema }),
  ].filter(Boolean);
}

function resolved(schema) {
  return schema.$ref ? schemas[schema.$ref.split("/").at(-1)] : schema;
}

function fieldsTable(schema) {
  const properties = Object.entries(resolved(schema).properties ?? {});
  if (!properties.length) return h("p", { class: "small" }, typeName(schema));
  const rows = properties.map(([name, property]) => [h("code", {}, name), typeName(property), property.description ?? resolved(property).description ?? ""]);
  return table(["Field", "Type", "Description"], rows);
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

/** An example value of a schema. */
function sample(schema, depth = 0) {
  const target = resolved(schema);
  if (target.const !== undefined) return target.const;
  if (target.enum) return target.enum[0];
  if (target.anyOf) return sample(target.anyOf[0], depth);
  if (target.type === "array") return depth < MAX_DEPTH ? [sample(target.items ?? {}, depth + 1)] : [];
  if (target.type === "object") {
    const properties = Object.entries(target.properties ?? {}).filter(([name, part]) => target.required?.includes(name) ?? !part.$ref);
    return depth < MAX_DEPTH ? Object.fromEntries(properties.map(([name, part]) => [name, sample(part, depth + 1)])) : {};
  }
  const type = [target.type].flat()[0];
  return type === "integer" || type === "number" ? 0 : type === "boolean" ? false : "";
}

function tryForm({ path, method, schema }) {
  const body = schema && h("textarea", { rows: 6, spellcheck: "false", class: "code" });
  if (body) body.value = JSON.stringify(sample(schema), null, 2);
  const status = h("p", { class: "status", role: "status" });
  const answer = h("pre", { hidden: true, tabindex: 0, "aria-label": "Reply" });
  const form = h("form", { class: "stack tight" }, body && field("Try it", body), h("div", {}, h("button", { type: "submit", class: "primary" }, "Send")), status, answer);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    status.textContent = "Asking the server";
    const headers = { "Content-Type": "application/json" };
    if (storedKey()) headers.Authorization = `Bearer ${storedKey()}`;
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
