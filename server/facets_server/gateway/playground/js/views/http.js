/** The HTTP routes of the server's OpenAPI description, with search and a form to try each one. */

import { connection, headers } from "../api.js";
import { field, form, h, opening, plural, submitButton } from "../dom.js";

const MAX_DEPTH = 3; // of nested messages in examples
const OTHER = "OpenAI, TEI, Cohere, probes";

let schemas = {};

export async function open(root) {
  const description = await (await fetch("openapi.json")).json();
  connection.reached();
  schemas = description.components.schemas;
  const routes = Object.entries(description.paths).map(([path, methods]) => {
    const [[method, operation]] = Object.entries(methods);
    return { group: operation.tags?.[0] ?? OTHER, text: `${path} ${operation.description}`.toLowerCase(), element: routeElement(path, method, operation) };
  });
  const groups = Object.entries(Object.groupBy(routes, ({ group }) => group));
  const sections = groups.map(([name, members]) => h("section", { class: "stack tight", "aria-label": name }, h("h2", {}, name), members.map(({ element }) => element)));
  const status = h("p", { class: "status", role: "status" });
  const search = h("input", { type: "search", autocomplete: "off", on: { input: filter } });

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const { text, element } of routes) element.hidden = !words.every((word) => text.includes(word));
    for (const section of sections) section.hidden = !section.querySelector(".route:not([hidden])");
    status.textContent = plural(routes.filter(({ element }) => !element.hidden).length, "route");
  }

  filter();
  const lede = h("p", { class: "lede" }, "Every route of this server, with a form to try it. Made from ", h("a", { href: "openapi.json" }, "openapi.json"), ".");
  root.replaceChildren(h("h1", {}, "HTTP"), lede, h("div", { class: "card" }, field("Find a route", search)), status, h("div", { class: "stack" }, sections));
}

function routeElement(path, method, operation) {
  const summary = [h("strong", { class: "method" }, method.toUpperCase()), h("code", {}, path), h("span", { class: "small" }, operation.summary ?? operation.description)];
  return opening(summary, () => routeContent(path, method, operation), { class: "card route" });
}

function routeContent(path, method, operation) {
  const request = operation.requestBody?.content;
  const part = (name, content) => {
    const [[type, { schema }]] = Object.entries(content);
    return h("div", {}, h("h3", {}, `${name}, ${type}`), h("pre", { tabindex: 0, "aria-label": name }, JSON.stringify(sample(schema), null, 2)));
  };
  const isSent = !request || request["application/json"]; // streams and files are not sent from here
  return [
    h("p", {}, operation.description),
    isSent ? tryForm(path, method, request?.["application/json"].schema) : part("Request", request),
    part("Reply", operation.responses["200"].content),
  ];
}

/** An example value of a schema. */
function sample(schema, depth = 0) {
  const target = schema.$ref ? schemas[schema.$ref.split("/").at(-1)] : schema;
  if (target.enum) return target.enum[0];
  if (target.anyOf) return sample(target.anyOf[0], depth);
  if (target.type === "array") return depth < MAX_DEPTH ? [sample(target.items ?? {}, depth + 1)] : [];
  if (target.type === "object") {
    const properties = Object.entries(target.properties ?? {}).filter(([name, part]) => target.required?.includes(name) ?? !part.$ref);
    return depth < MAX_DEPTH ? Object.fromEntries(properties.map(([name, part]) => [name, sample(part, depth + 1)])) : {};
  }
  return target.const ?? { integer: 0, number: 0, boolean: false }[[target.type].flat()[0]] ?? "";
}

function tryForm(path, method, schema) {
  const body = schema && h("textarea", { rows: 6, spellcheck: "false", class: "code" }, JSON.stringify(sample(schema), null, 2));
  const status = h("p", { class: "status", role: "status" });
  const answer = h("pre", { hidden: true, tabindex: 0, "aria-label": "Reply" });
  const send = async () => {
    status.textContent = "Asking the server";
    try {
      const reply = await fetch(path, { method: method.toUpperCase(), headers: headers(), body: body?.value });
      status.textContent = `${reply.status} ${reply.statusText}`;
      answer.hidden = false;
      answer.textContent = JSON.stringify(await reply.json(), null, 2);
    } catch {
      status.textContent = "The server does not answer.";
    }
  };
  return form({ class: "stack tight" }, send, body && field("Try it", body), h("div", {}, submitButton("Send")), status, answer);
}
