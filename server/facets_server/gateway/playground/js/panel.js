/** Parts that all views share: a form, examples, one request at a time, its results or its error. */

import { CallError, connection } from "./api.js";
import { button, form as formOf, h, submitButton } from "./dom.js";

const LONGEST_ADDRESS = 1_800;

/**
 * Fills `root` with a view.
 * @param {Object} parts `action` labels the submit button unless the controls have one; each example has a `label` and
 *   `values` of the controls; `ask(values, signal)` resolves to an answer, `show(answer, values)` returns `{nodes, status}`.
 */
export function panel(root, { title = root.dataset.title, lede, controls, action, examples = [], ask, show }) {
  const actions = h("div", { class: "row actions" }, action && submitButton(action), exampleRow(examples, (values) => fillAndRun(values, "pushState")));
  const form = formOf({ class: "card stack", "aria-label": title }, () => run("pushState"), controls, actions);
  const defaults = { ...valuesOf(form), c: "" }; // a link names its collection, because the default is the reader's
  const status = h("p", { class: "status", role: "status" });
  const results = h("div", { class: "results" });
  root.replaceChildren(h("h1", {}, title), lede ? h("p", { class: "lede" }, lede) : "", form, status, results);
  let running = null;
  let failed = false;

  /** Sends the form; its address follows (pushState) or replaces (replaceState) the one before. */
  async function run(change = "replaceState") {
    running?.abort();
    const current = (running = new AbortController());
    const values = valuesOf(form);
    remember(change, root.dataset.view, Object.entries(values).filter(([name, value]) => value !== defaults[name]));
    form.setAttribute("aria-busy", "true");
    status.textContent = "Asking the server";
    try {
      const shown = show(await ask(values, current.signal), values);
      if (current.signal.aborted) return;
      results.replaceChildren(...shown.nodes);
      status.textContent = shown.status;
      failed = false;
      if (results.getBoundingClientRect().top > innerHeight * 0.8) status.scrollIntoView(); // as on a phone
    } catch (error) {
      if (current.signal.aborted) return;
      failed = error.code === "lost";
      results.replaceChildren(problem(error));
      status.textContent = "";
    } finally {
      if (running === current) form.setAttribute("aria-busy", "false");
    }
  }

  function fillAndRun(values, change) {
    for (const [name, value] of Object.entries(values)) {
      const control = form.elements.namedItem(name);
      if (!control) continue;
      control.value = value;
      if (control.value !== value && control.matches("select")) control.append(h("option", { value, selected: true }, `${value} (missing)`));
      control.dispatchEvent(new Event("filled"));
    }
    return form.checkValidity() ? run(change) : undefined;
  }

  const again = (event) => event.detail === "reached" && failed && run();
  connection.addEventListener("change", again);
  return {
    form,
    run,
    open: (values, change) => (Object.keys(values).length ? fillAndRun(values, change) : undefined),
    close: () => {
      running?.abort();
      connection.removeEventListener("change", again);
    },
  };
}

/** An error in one sentence, with advice. */
export function problem(error) {
  if (!(error instanceof CallError)) {
    console.error(error);
    error = new CallError("internal", "The page could not show the answer.", "Reload the page; the browser's console has details.");
  }
  const enter = error.code === "unauthenticated" && button("Enter a key", () => document.getElementById("key-dialog").showModal());
  return h("div", { class: "problem", role: "alert" }, h("strong", {}, error.message), error.advice && h("span", {}, ` ${error.advice} `), enter);
}

export function exampleRow(examples, choose) {
  if (examples.length === 0) return null;
  const buttons = examples.map(({ label, values }) => button(label, () => choose(values), { class: "chip" }));
  return h("div", { class: "row small", role: "group", "aria-label": "Examples" }, h("span", { "aria-hidden": "true" }, "Try"), buttons);
}

function valuesOf(form) {
  return Object.fromEntries(new FormData(form));
}

/** Puts the request into the address, so that it can be sent as a link; long texts are left out. */
function remember(change, name, values) {
  const query = new URLSearchParams(values);
  const address = name === "ask" ? `${location.pathname}?${query}` : `${location.pathname}#${name}?${query}`;
  if (address.length <= LONGEST_ADDRESS && !location.href.endsWith(address)) history[change](null, "", address);
}
