/** Creates elements without HTML strings: everything that a server sends becomes a text node. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Creates an HTML element.
 * @param {string} tag
 * @param {Object<string, any>} [attributes] `on` has listeners, `data` has data attributes; false and null are skipped.
 * @param {...(Node|string|number|null|false|Array)} children
 */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Creates an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "data") {
      Object.assign(element.dataset, value);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return element;
}

let numIds = 0;

/** A unique id. */
export function uniqueId(prefix) {
  numIds += 1;
  return `${prefix}-${numIds}`;
}

/** A button that calls `onClick`. */
export function button(label, onClick, attributes = {}) {
  return h("button", { type: "button", class: "quiet", on: { click: onClick }, ...attributes }, label);
}

/** A labelled field with an optional hint below it. */
export function field(label, control, hint = "") {
  control.id ||= uniqueId("field");
  const hintId = `${control.id}-hint`;
  if (hint) control.setAttribute("aria-describedby", hintId);
  return h(
    "div",
    { class: "field" },
    h("label", { for: control.id }, label),
    control,
    hint && h("p", { class: "hint", id: hintId }, hint),
  );
}

/** A section with a heading. */
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

/** A table whose first column holds row headings; without `head`, a list of facts. */
export function table(head, rows) {
  const row = (cells) => h("tr", {}, cells.map((cell, place) => (place ? h("td", {}, cell) : h("th", { scope: "row" }, cell))));
  const columns = h("thead", {}, h("tr", {}, head.map((name) => (name ? h("th", { scope: "col" }, name) : h("td")))));
  const element = h("table", {}, head.length > 0 && columns, h("tbody", {}, rows.map(row)));
  return head.length ? h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": head.filter(Boolean).join(", ") }, element) : element;
}

/** A select of `[value, label]` pairs. */
export function select(name, choices, value = "") {
  const control = h("select", { name }, choices.map(([choice, label]) => h("option", { value: choice }, label)));
  if (choices.some(([choice]) => choice === value)) control.value = value;
  return control;
}

/** A bar from 0 to 1 with a label. */
export function meter(share, label) {
  const clipped = Math.min(1, Math.max(0, share));
  const fill = h("span", { class: "fill" });
  fill.style.width = `${(clipped * 100).toFixed(1)}%`;
  return h("span", { class: "meter" }, h("span", { class: "track", "aria-hidden": "true" }, fill), h("span", {}, label));
}

/** CSS class of the colour of a facet, theme or match. */
export function hue(index) {
  return `hue-${((index % 8) + 8) % 8}`;
}

/**
 * A button that highlights something: calls `enter` on hover and focus, `leave` afterwards; a press keeps the highlight.
 * @param {Object} attributes `class` and more.
 */
export function highlightButton(attributes, { enter, leave }, ...children) {
  let isPressed = false;
  const end = () => isPressed || leave();
  const element = h("button", { type: "button", "aria-pressed": "false", ...attributes }, children);
  const toggle = () => {
    isPressed = !isPressed;
    element.setAttribute("aria-pressed", String(isPressed));
    if (isPressed) enter();
    else leave();
  };
  const listeners = { pointerenter: enter, focus: enter, pointerleave: end, blur: end, click: toggle };
  for (const [event, listener] of Object.entries(listeners)) element.addEventListener(event, () => listener());
  return element;
}

/** The value of an enum in words: "SEARCH_MODE_LEXICAL" without "SEARCH_MODE_" is "lexical". */
export function enumLabel(value, prefix) {
  return (value ?? "").replace(prefix, "").toLowerCase().replaceAll("_", " ");
}

const INTEGER = new Intl.NumberFormat("en");

/** 12,345. */
export function count(number) {
  return INTEGER.format(Number(number));
}

/** "1 document", "2 documents". */
export function plural(number, singular, many = `${singular}s`) {
  return `${count(number)} ${Number(number) === 1 ? singular : many}`;
}

/** "40 seconds", "44 minutes", "3 hours". */
export function duration(seconds) {
  const [size, unit] = [[3600, "hour"], [60, "minute"]].find(([size]) => seconds >= 2 * size) ?? [1, "second"];
  return plural(Math.ceil(seconds / size), unit);
}

/** 0.123 as "12 %". */
export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

/** A number with a fixed number of digits and a typographic minus sign. */
export function decimal(number, digits = 2) {
  return Number(number ?? 0).toFixed(digits).replace("-", "\u2212");
}
