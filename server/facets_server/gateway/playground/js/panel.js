/** What all views have in common: a form, examples, one question at a time, its answer or what went wrong. */

import { CallError, connection } from "./api.js";
import { h } from "./dom.js";

const LONGEST_ADDRESS = 1_800;

/**
 * Fills `root` with a view.
 * @param {HTMLElement} root
 * @param {Object} parts
 * @param {string} parts.name Its hash.
 * @param {string} parts.title
 * @param {string} parts.lede One sentence: what it shows.
 * @param {Node[]} parts.controls Named form controls, labelled.
 * @param {string} [parts.action] Label of the button, where the controls have none.
 * @param {{label: string, values: Object<string, string>}[]} parts.examples
 * @param {() => Node} [parts.before] What stands where no question has been asked.
 * @param {(values: Object<string, string>, signal: AbortSignal, progress: Function) => Promise<any>} parts.ask It may
 *   hand what `show` returns to `progress`, as often as it has something to show before its end.
 * @param {(answer: any, values: Object<string, string>) => {nodes?: Node[], status: string}} parts.show Without nodes
 *   what is shown stays.
 * @returns {{form: HTMLFormElement, run: () => Promise<void>, close: () => void, open: (values: Object) => void}}
 */
export function panel(root, parts) {
  const form = h("form", { class: "card stack", "aria-label": parts.title }, parts.controls);
  const own = parts.action && h("button", { type: "submit", class: "primary" }, parts.action);
  form.append(h("div", { class: "row actions" }, own ?? null, exampleRow(parts.examples, (values) => fillAndRun(values))));
  const button = form.querySelector("[type=submit]");
  const status = h("p", { class: "status", role: "status" });
  const results = h("div", { class: "results" }, parts.before?.());
  root.replaceChildren(h("h1", {}, parts.title), h("p", { class: "lede" }, parts.lede), form, status, results);

  let running = null;
  let failed = false;

  async function run() {
    running?.abort();
    const mine = (running = new AbortController());
    const values = valuesOf(form);
    remember(parts.name, values);
    busy(true);
    try {
      const answer = await parts.ask(values, mine.signal, (part) => mine.signal.aborted || put(part));
      if (mine.signal.aborted) return;
      put(parts.show(answer, values));
      failed = false;
      intoSight(status, results);
    } catch (error) {
      if (mine.signal.aborted) return;
      failed = error.code === "lost";
      results.replaceChildren(problem(error));
      status.textContent = "";
    } finally {
      if (running === mine) busy(false);
    }
  }

  function put({ nodes, status: told }) {
    if (nodes) {
      results.replaceChildren(...nodes);
      results.classList.remove("stale");
      for (const node of nodes) node.dispatchEvent(new Event("shown"));
    }
    status.textContent = told;
  }

  function busy(is) {
    form.setAttribute("aria-busy", String(is));
    results.classList.toggle("stale", is);
    button.classList.toggle("working", is);
    if (is) status.textContent = "Asking the server";
  }

  function fillAndRun(values) {
    fill(form, values);
    return form.checkValidity() ? run() : undefined;
  }

  const again = (event) => event.detail === "reached" && failed && run();
  connection.addEventListener("change", again);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  return {
    form,
    run,
    open: (values) => (Object.keys(values).length ? fillAndRun(values) : undefined),
    close: () => {
      running?.abort();
      connection.removeEventListener("change", again);
    },
  };
}

/** Scrolls to an answer that begins below what is seen, as on a phone. */
function intoSight(status, results) {
  if (results.getBoundingClientRect().top < innerHeight * 0.8) return;
  const smooth = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  status.scrollIntoView({ block: "start", behavior: smooth ? "smooth" : "auto" });
}

/** What went wrong, in one sentence, and what to do. */
export function problem(error) {
  if (!(error instanceof CallError)) {
    console.error(error);
    error = new CallError("internal", "The page could not show the answer.", "Reload it; the browser's console says more.");
  }
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("strong", {}, error.message),
    error.advice && h("span", {}, ` ${error.advice}`),
  );
}

function exampleRow(examples, choose) {
  if (examples.length === 0) return null;
  return h(
    "div",
    { class: "examples", role: "group", "aria-label": "Examples" },
    h("span", { "aria-hidden": "true" }, "Try"),
    examples.map((example) =>
      h("button", { type: "button", class: "chip", on: { click: () => choose(example.values) } }, example.label),
    ),
  );
}

/** Values of the named controls of a form; unchecked boxes are empty. */
function valuesOf(form) {
  const values = {};
  for (const control of form.elements) {
    if (!control.name) continue;
    values[control.name] = control.type === "checkbox" && !control.checked ? "" : control.value;
  }
  return values;
}

function fill(form, values) {
  for (const [name, value] of Object.entries(values)) {
    const control = form.elements.namedItem(name);
    if (!control) continue;
    if (control.type === "checkbox") control.checked = value !== "";
    else control.value = value;
    if (control.matches("select") && control.value !== value) control.append(h("option", { value, selected: true }, `${value} (not there)`));
    control.dispatchEvent(new Event("filled"));
  }
}

/** Puts the question into the address, so that it can be kept and sent; long texts stay out of it. */
function remember(name, values) {
  const asked = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""));
  const hash = `#${name}?${asked}`;
  if (hash.length <= LONGEST_ADDRESS && location.hash !== hash) history.pushState(null, "", hash);
}
