/** Parts that all views share: a form, examples, one request at a time, its results or its error. */

import { CallError, connection } from "./api.js";
import { button, h } from "./dom.js";

const LONGEST_ADDRESS = 1_800;

/**
 * Fills `root` with a view.
 * @param {HTMLElement} root
 * @param {Object} parts
 * @param {string} parts.name Name in the address.
 * @param {string} parts.title
 * @param {string} parts.lede One sentence that says what the view shows.
 * @param {Node[]} parts.controls Labelled form controls.
 * @param {string} [parts.action] Label of the submit button, unless the controls have one.
 * @param {{label: string, values: Object<string, string>}[]} parts.examples
 * @param {() => Node} [parts.before] Content before the first request.
 * @param {(values: Object<string, string>, signal: AbortSignal) => Promise<any>} parts.ask
 * @param {(answer: any, values: Object<string, string>) => {nodes: Node[], status: string, stage?: Element,
 *   redraw?: () => void}} parts.show `redraw` is called when `stage` is shown or resized.
 * @returns {{form: HTMLFormElement, run: () => Promise<void>, close: () => void, open: (values: Object) => void}}
 */
export function panel(root, parts) {
  const form = h("form", { class: "card stack", "aria-label": parts.title }, parts.controls);
  const action = parts.action && h("button", { type: "submit", class: "primary" }, parts.action);
  form.append(h("div", { class: "row actions" }, action ?? null, exampleRow(parts.examples, (values) => fillAndRun(values))));
  const submit = form.querySelector("[type=submit]");
  const status = h("p", { class: "status", role: "status" });
  const results = h("div", { class: "results" }, parts.before?.());
  root.replaceChildren(h("h1", {}, parts.title), h("p", { class: "lede" }, parts.lede), form, status, results);

  let running = null;
  let failed = false;
  let redraw = null;
  const resized = new ResizeObserver(() => redraw?.());

  async function run() {
    running?.abort();
    const current = (running = new AbortController());
    const values = valuesOf(form);
    remember(parts.name, values);
    busy(true);
    try {
      const answer = await parts.ask(values, current.signal);
      if (current.signal.aborted) return;
      put(parts.show(answer, values));
      failed = false;
      intoSight(status, results);
    } catch (error) {
      if (current.signal.aborted) return;
      failed = error.code === "lost";
      results.replaceChildren(problem(error));
      status.textContent = "";
    } finally {
      if (running === current) busy(false);
    }
  }

  function put(shown) {
    results.replaceChildren(...shown.nodes);
    status.textContent = shown.status;
    redraw = shown.redraw;
    resized.disconnect();
    if (shown.stage) resized.observe(shown.stage); // also calls redraw once
  }

  function busy(isBusy) {
    form.setAttribute("aria-busy", String(isBusy));
    results.classList.toggle("stale", isBusy);
    submit.classList.toggle("working", isBusy);
    if (isBusy) status.textContent = "Asking the server";
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
      resized.disconnect();
      connection.removeEventListener("change", again);
    },
  };
}

/** Scrolls to results that start below the visible area, as on a phone. */
function intoSight(status, results) {
  if (results.getBoundingClientRect().top < innerHeight * 0.8) return;
  const smooth = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  status.scrollIntoView({ block: "start", behavior: smooth ? "smooth" : "auto" });
}

/** An error in one sentence, with advice. */
export function problem(error) {
  if (!(error instanceof CallError)) {
    console.error(error);
    error = new CallError("internal", "The page could not show the answer.", "Reload the page; the browser's console has details.");
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
    examples.map((example) => button(example.label, () => choose(example.values), { class: "chip" })),
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
    if (control.matches("select") && control.value !== value) control.append(h("option", { value, selected: true }, `${value} (missing)`));
    control.dispatchEvent(new Event("filled"));
  }
}

/** Puts the request into the address, so that it can be bookmarked; long texts are left out. */
function remember(name, values) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""));
  const hash = `#${name}?${query}`;
  if (hash.length <= LONGEST_ADDRESS && location.hash !== hash) history.pushState(null, "", hash);
}
