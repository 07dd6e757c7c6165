/** Parts of texts. The server counts code points and JavaScript UTF-16 units, so only this module slices texts. */

import { h } from "./dom.js";

/** A text with offsets in code points. */
export class Text {
  constructor(string) {
    this.characters = Array.from(string);
    this.length = this.characters.length;
  }

  slice(start, end) {
    return this.characters.slice(start, end).join("");
  }
}

/** A span of the text as `{start, end}`, with the zeros that proto3 JSON omits; null if unset or in a field. */
export function span(message) {
  const end = message?.end ?? 0;
  return end > 0 && !message.field ? { start: message.start ?? 0, end } : null;
}

/** Cuts a part of a text where marks (`{start, end}`, may overlap) start and end; each piece has the marks on it. */
function pieces(text, marks, part) {
  const inside = marks.filter((mark) => mark.end > part.start && mark.start < part.end);
  const cuts = inside.flatMap((mark) => [Math.max(part.start, mark.start), Math.min(part.end, mark.end)]);
  const sorted = [...new Set([part.start, part.end, ...cuts])].sort((first, second) => first - second);
  return sorted.slice(0, -1).map((start, index) => {
    const end = sorted[index + 1];
    return { start, end, text: text.slice(start, end), marks: inside.filter((mark) => mark.start < end && mark.end > start) };
  });
}

/**
 * A part of the text as nodes. Marks with `whole`, which must not overlap, become `mark` elements around all others.
 * @param {{start: number, end: number, kind?: string, facet?: number, whole?: boolean}[]} marks `kind` is a class.
 */
export function marked(text, marks, part = { start: 0, end: text.length }) {
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

/** The text with a span for every token of an explanation, tied to the facets that attend to it. */
export function tokenNodes(text, tokens, facetsOf, attributes = () => ({ class: "token" })) {
  let end = 0;
  const nodes = tokens.flatMap((token, index) => {
    const start = token.start ?? 0;
    const before = text.slice(end, start);
    end = token.end;
    return [before, h("span", { ...attributes(token), data: { facets: facetsOf(token, index).join(" ") } }, text.slice(start, end))];
  });
  return [...nodes, text.slice(end, text.length)];
}

/** Whether a facet belongs to a token: by the facet's span, or without one, by the tokens it attends to. */
export function attendsTo(facet, token, index, { minCosine, numTokens = Infinity }) {
  const part = span(facet.span);
  if (part) return (token.start ?? 0) < part.end && token.end > part.start;
  return (facet.tokens ?? []).slice(0, numTokens).some((attended) => (attended.token ?? 0) === index && attended.cosine > minCosine);
}

export function wordsOf(nearest, number = 3) {
  return (nearest ?? []).slice(0, number).map((near) => near.word).join(", ");
}

/** Highlights the parts inside `root` that belong to `facet`; null: none. */
export function glow(root, facet) {
  for (const element of root.querySelectorAll("[data-facets]")) {
    element.classList.toggle("glow", element.dataset.facets.split(" ").includes(String(facet)));
  }
}

/** The part of a long text around `focus`, cut at words; the whole text if it is not much longer. */
export function excerpt(text, focus, length = 420) {
  if (text.length <= length * 1.3) return { start: 0, end: text.length };
  const center = focus ? (focus.start + Math.min(focus.end, focus.start + length)) / 2 : 0;
  let start = Math.max(0, Math.round(Math.min(center - length / 2, text.length - length, focus?.start ?? 0)));
  let end = Math.min(text.length, start + length);
  while (start > 0 && text.characters[start - 1] !== " ") start -= 1;
  while (end < text.length && text.characters[end] !== " ") end += 1;
  return { start, end };
}
