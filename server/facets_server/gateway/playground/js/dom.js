/** Elements without HTML strings: whatever a server sends becomes a text node. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Makes an element.
 * @param {string} tag
 * @param {Object<string, any>} [attributes] `on` holds listeners, `data` data attributes; false and null are left out.
 * @param {...(Node|string|number|null|false|Array)} children
 */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
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

let made = 0;

/** An id that nothing else on the page has. */
export function uniqueId(prefix) {
  made += 1;
  return `${prefix}-${made}`;
}

/** A labelled field; `hint` stands below it. */
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

/** A part of a view with its name above it. */
export function card(name, ...children) {
  const id = uniqueId("card");
  return h("section", { class: "card stack tight", "aria-labelledby": id }, h("h2", { id }, name), children);
}

/** A table of rows of cells, the first of each naming its row; without `head` a list of facts. */
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

/** A bar from 0 to 1 with what it means beside it. */
export function meter(share, label) {
  const clipped = Math.min(1, Math.max(0, share));
  const fill = h("span", { class: "fill" });
  fill.style.width = `${(clipped * 100).toFixed(1)}%`;
  return h("span", { class: "meter" }, h("span", { class: "track", "aria-hidden": "true" }, fill), h("span", {}, label));
}

/** Class of the colour of facet, theme or match number `index`. */
export function hue(index) {
  return `hue-${((index % 8) + 8) % 8}`;
}

/** Follows pointer and keyboard: calls `enter` and `leave` as `element` gets and loses attention; a press keeps it. */
export function attend(element, enter, leave) {
  let kept = false;
  const begin = () => enter();
  const end = () => kept || leave();
  element.addEventListener("pointerenter", begin);
  element.addEventListener("pointerleave", end);
  element.addEventListener("focus", begin);
  element.addEventListener("blur", end);
  element.addEventListener("click", () => {
    kept = !kept;
    element.setAttribute("aria-pressed", String(kept));
    if (kept) enter();
    else leave();
  });
  element.setAttribute("aria-pressed", "false");
}

const WHOLE = new Intl.NumberFormat("en");

/** 12,345. */
export function count(number) {
  return WHOLE.format(Number(number));
}

/** "1 document", "2 documents". */
export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${Number(number) === 1 ? one : many}`;
}

/** "40 seconds", "44 minutes", "3 hours". */
export function lasting(seconds) {
  const [size, unit] = [[3600, "hour"], [60, "minute"]].find(([size]) => seconds >= 2 * size) ?? [1, "second"];
  return plural(Math.ceil(seconds / size), unit);
}

/** 0.123 as "12 %". */
export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

/** Two digits, with a minus sign of full width. */
export function decimal(number, digits = 2) {
  return Number(number ?? 0).toFixed(digits).replace("-", "\u2212");
}
