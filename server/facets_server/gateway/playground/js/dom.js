/** Creates elements without HTML strings: everything that a server sends becomes a text node. */

/** Creates an HTML element. `on` has listeners, `data` has data attributes; false and null are skipped. */
export function h(tag, { on = {}, data = {}, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  Object.assign(element.dataset, data);
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return element;
}

let numIds = 0;

function uniqueId(prefix) {
  return `${prefix}-${(numIds += 1)}`;
}

export function button(label, onClick, attributes = {}) {
  return h("button", { type: "button", class: "quiet", on: { click: onClick }, ...attributes }, label);
}

export function submitButton(label) {
  return h("button", { type: "submit", class: "primary" }, label);
}

/** A form that calls `submitted` instead of leaving the page. */
export function form(attributes, submitted, ...children) {
  return h("form", { ...attributes, on: { submit: (event) => (event.preventDefault(), submitted()) } }, children);
}

/** A labelled field with an optional hint below it. */
export function field(label, control, hint = "") {
  control.id ||= uniqueId("field");
  const hintId = `${control.id}-hint`;
  if (hint) control.setAttribute("aria-describedby", hintId);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, hint && h("p", { class: "hint", id: hintId }, hint));
}

export function card(name, ...children) {
  const id = uniqueId("card");
  return h("section", { class: "card stack tight", "aria-labelledby": id }, h("h2", { id }, name), children);
}

/** A message in place of results. */
export function nothing(heading, ...content) {
  return h("div", { class: "nothing card" }, h("h2", {}, heading), content);
}

/** Details that open below a summary line. */
export function folded(summary, ...content) {
  return h("details", { class: "folded" }, h("summary", {}, summary), content);
}

/** Details whose content is made when they are first opened. */
export function opening(summary, content, options = {}) {
  const toggle = ({ target }) => target.open && target.childElementCount === 1 && target.append(...[content()].flat());
  return h("details", { ...options, on: { toggle } }, h("summary", {}, summary));
}

/** A command line to copy. */
export function command(text) {
  return h("pre", { tabindex: 0, "aria-label": "Command" }, h("code", {}, text));
}

/** A table whose first column holds row headings; without `head`, a list of facts. */
export function table(head, rows) {
  const row = (cells) => h("tr", {}, cells.map((cell, column) => (column ? h("td", {}, cell) : h("th", { scope: "row" }, cell))));
  const columns = h("thead", {}, h("tr", {}, head.map((name) => (name ? h("th", { scope: "col" }, name) : h("td")))));
  const element = h("table", {}, head.length > 0 && columns, h("tbody", {}, rows.map(row)));
  return head.length ? h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": head.filter(Boolean).join(", ") }, element) : element;
}

/** A select of `[value, label]` pairs. */
export function select(name, choices, value = "", on = {}) {
  return h("select", { name, on }, choices.map(([choice, label]) => h("option", { value: choice, selected: choice === value }, label)));
}

/** A bar from 0 to 1 with a label. */
export function meter(share, label) {
  return h("label", { class: "meter" }, h("meter", { value: share }), label);
}

/** CSS class of the colour of a facet, theme or match. */
export function hue(index) {
  return `hue-${index % 8}`;
}

/** A button that calls `focus(true)` on hover and focus, `focus(false)` afterwards; a press keeps the highlight. */
export function highlightButton(attributes, focus, ...children) {
  let isPressed = false;
  const begin = () => focus(true);
  const end = () => focus(isPressed);
  const click = () => {
    isPressed = !isPressed;
    element.setAttribute("aria-pressed", String(isPressed));
    focus(isPressed);
  };
  const on = { pointerenter: begin, focus: begin, pointerleave: end, blur: end, click };
  const element = button(children, null, { "aria-pressed": "false", ...attributes, on });
  return element;
}

/** The value of an enum in words: "SEARCH_MODE_LEXICAL" without "SEARCH_MODE_" is "lexical". */
export function enumLabel(value, prefix) {
  return (value ?? "").replace(prefix, "").toLowerCase().replaceAll("_", " ");
}

export function count(number) {
  return Number(number ?? 0).toLocaleString("en");
}

/** "1 document", "2 documents". */
export function plural(number, singular, many = `${singular}s`) {
  return `${count(number)} ${Number(number) === 1 ? singular : many}`;
}

/** 0.123 as "12 %". */
export function percent(share) {
  return `${Math.round((share ?? 0) * 100)} %`;
}

/** A number with a fixed number of digits and a typographic minus sign. */
export function decimal(number, digits = 2) {
  return Number(number ?? 0).toFixed(digits).replace("-", "\u2212");
}
