/** Parts of texts. The server counts Unicode code points, JavaScript UTF-16 units: nothing else may slice. */

import { h } from "./dom.js";

/** A text whose places are code points. */
export class Text {
  constructor(string) {
    this.string = string;
    this.characters = Array.from(string);
    this.length = this.characters.length;
  }

  slice(start, end) {
    return this.characters.slice(start, end).join("");
  }
}

/** A span of the text with what proto3's JSON leaves out: `{start, end}`; null for none, and for one of a field. */
export function span(given) {
  const end = given?.end ?? 0;
  return end > 0 && !given.field ? { start: given.start ?? 0, end } : null;
}

/**
 * Cuts a text where marks begin and end, so that marks may overlap.
 * @param {Text} text
 * @param {{start: number, end: number}[]} marks
 * @param {{start: number, end: number}} [part] Only this part of the text.
 * @returns {{start: number, end: number, text: string, marks: Object[]}[]} Pieces in order, with the marks on each.
 */
export function pieces(text, marks, part = { start: 0, end: text.length }) {
  const inside = marks.filter((mark) => mark.end > part.start && mark.start < part.end);
  const cuts = new Set([part.start, part.end]);
  for (const mark of inside) {
    cuts.add(Math.max(part.start, mark.start));
    cuts.add(Math.min(part.end, mark.end));
  }
  const sorted = [...cuts].sort((first, second) => first - second);
  return sorted.slice(0, -1).map((start, place) => {
    const end = sorted[place + 1];
    const over = inside.filter((mark) => mark.start < end && mark.end > start);
    return { start, end, text: text.slice(start, end), marks: over };
  });
}

/**
 * The text as nodes. Marks with `whole` (none of these overlap) become one `mark` element each, around all else.
 * @param {Text} text
 * @param {{start: number, end: number, kind?: string, facet?: number, whole?: boolean}[]} marks `kind` is a class.
 */
export function marked(text, marks, part) {
  const rest = marks.filter((mark) => !mark.whole);
  return pieces(text, marks.filter((mark) => mark.whole), part).map((run) => {
    const nodes = pieces(text, rest, run).map(pieceNode);
    return run.marks.length ? h("mark", { class: run.marks[0].kind }, nodes) : nodes;
  });
}

function pieceNode(piece) {
  const kinds = [...new Set(piece.marks.map((mark) => mark.kind).filter(Boolean))];
  const facets = piece.marks.map((mark) => mark.facet).filter((facet) => facet !== undefined);
  if (kinds.length === 0 && facets.length === 0) return piece.text;
  return h("span", { class: kinds.join(" "), data: facets.length ? { facets: facets.join(" ") } : {} }, piece.text);
}

/** Lights up, inside `root`, what belongs to `facet`; null switches all off. */
export function glow(root, facet) {
  for (const element of root.querySelectorAll("[data-facets]")) {
    const mine = facet !== null && element.dataset.facets.split(" ").includes(String(facet));
    element.classList.toggle("glow", mine);
  }
}

/** The part of a long text around `focus`, at word boundaries; the whole text where that is not much longer. */
export function excerpt(text, focus, length = 420) {
  if (text.length <= length * 1.3) return { start: 0, end: text.length };
  const center = focus ? (focus.start + Math.min(focus.end, focus.start + length)) / 2 : 0;
  let start = Math.max(0, Math.round(Math.min(center - length / 2, text.length - length)));
  if (focus) start = Math.min(start, focus.start);
  let end = Math.min(text.length, start + length);
  while (start > 0 && text.characters[start - 1] !== " ") start -= 1;
  while (end < text.length && text.characters[end] !== " ") end += 1;
  return { start, end };
}
