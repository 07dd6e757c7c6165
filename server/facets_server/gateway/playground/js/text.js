/** Parts of texts. The server counts code points and JavaScript UTF-16 units, so only this module slices texts. */

import { h } from "./dom.js";

const MIN_COSINE = 0.15; // below this a facet does not attend to a token

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
 * @param {{start: number, end: number, kind?: string, title?: string, facets?: number[], whole?: boolean}[]} marks `kind` is a class.
 */
export function marked(text, marks, part = { start: 0, end: text.length }) {
  const rest = marks.filter((mark) => !mark.whole);
  return pieces(text, marks.filter((mark) => mark.whole), part).map((run) => {
    const nodes = pieces(text, rest, run).map(pieceNode);
    return run.marks.length ? h("mark", { class: run.marks[0].kind }, nodes) : nodes;
  });
}

function pieceNode({ text, marks }) {
  const kinds = new Set(marks.flatMap((mark) => mark.kind ?? []));
  const facets = marks.flatMap((mark) => mark.facets ?? []);
  if (!kinds.size && !facets.length) return text;
  return h("span", { class: [...kinds].join(" "), title: marks[0].title, data: facets.length ? { facets: facets.join(" ") } : {} }, text);
}

/** Marks for the tokens of an explanation, tied to the facets that attend to them; `look(token)` adds `kind` and `title`. */
export function tokenMarks({ tokens = [], facets = [] }, look = () => ({ kind: "token" })) {
  const facetsOf = (token, index) => facets.filter((facet) => attendsTo(facet, token, index)).map(({ facet = 0 }) => facet);
  return tokens.map((token, index) => ({ start: token.start ?? 0, end: token.end, facets: facetsOf(token, index), ...look(token) }));
}

/** Whether a facet belongs to a token: by the facet's span, or without one, by the tokens it attends to. */
function attendsTo(facet, token, index) {
  const part = span(facet.span);
  if (part) return (token.start ?? 0) < part.end && token.end > part.start;
  return (facet.tokens ?? []).some((attended) => (attended.token ?? 0) === index && attended.cosine > MIN_COSINE);
}

export function wordsOf(nearest, number = Infinity) {
  return (nearest ?? []).slice(0, number).map((near) => near.word).join(", ");
}

/** A name for a facet: its nearest plain words, without repeated stems ("cell", not "cell, cells"). */
export function nameOf(nearest, number = 2) {
  const words = (nearest ?? []).map((near) => near.word);
  const plain = words.filter((word) => /^\p{L}{3,}$/u.test(word));
  const distinct = (plain.length ? plain : words).filter((word, index, all) => all.findIndex((other) => isSameStem(word, other)) === index);
  return distinct.slice(0, number).join(", ") || "no words";
}

function isSameStem(word, other) {
  const length = Math.min(4, word.length, other.length);
  return word.slice(0, length) === other.slice(0, length);
}

/** What meets in a pair of facets: "games \u2192 football, rugby"; only the second name if both begin alike. */
export function pairName(first, second) {
  const [from, to] = [nameOf(first, 1), nameOf(second, 1)];
  return isSameStem(from, to) ? nameOf(second) : `${from} \u2192 ${to}`;
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
  while (start > 0 && /\S/.test(text.characters[start - 1])) start -= 1;
  while (end < text.length && /\S/.test(text.characters[end])) end += 1;
  const rows = linesOf(text).filter((line) => line.isRow);
  const cut = (position) => rows.find((line) => line.start < position && position < line.end);
  return { start: cut(start)?.start ?? start, end: cut(end)?.end ?? end };
}

/** Lines of a part; rows of tables begin and end with a bar, headings begin with number signs after an empty line. */
function linesOf(text, part = { start: 0, end: text.length }) {
  const lines = [];
  for (let start = part.start; start < part.end; ) {
    const next = text.characters.indexOf("\n", start);
    const end = next < 0 || next > part.end ? part.end : next;
    const string = text.slice(start, end).trim();
    const isApart = start === part.start || text.characters[start - 2] === "\n";
    const headingMark = isApart ? (/^#{1,6} (?=\S)/.exec(text.slice(start, end))?.[0].length ?? 0) : 0;
    lines.push({ start, end, headingMark, isRow: /^\|.+\|$/.test(string), isRule: /^[|\s:-]*-[|\s:-]*$/.test(string) });
    start = end + 1;
  }
  return lines;
}

/** A part of a text as nodes: paragraphs, headings, and tables drawn as tables. Marks as in {@link marked}. */
export function passage(text, marks, part = { start: 0, end: text.length }) {
  const groups = [];
  for (const line of linesOf(text, part)) {
    const last = groups.at(-1);
    const isBelowHeading = last?.[0].headingMark > 0;
    if (isBelowHeading && line.start === line.end) continue;
    if (last && last[0].isRow === line.isRow && !line.headingMark && !isBelowHeading) last.push(line);
    else groups.push([line]);
  }
  return groups.map((lines) => {
    const [{ start, isRow, headingMark }] = lines;
    if (isRow && lines.length > 1) return tableNode(text, marks, lines);
    const run = { start: start + headingMark, end: lines.at(-1).end };
    return text.slice(run.start, run.end).trim() && h(headingMark ? "b" : "p", {}, marked(text, marks, run));
  });
}

function tableNode(text, marks, lines) {
  const rows = lines.filter((line) => !line.isRule).map((line, index) => {
    const tag = index === 0 && lines[1].isRule ? "th" : "td";
    return h("tr", {}, cellsOf(text, line).map((cell) => h(tag, {}, marked(text, marks, cell))));
  });
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table" }, h("table", {}, h("tbody", {}, rows)));
}

function cellsOf(text, { start, end }) {
  const isBar = (position) => text.characters[position] === "|" && text.characters[position - 1] !== "\\";
  const bars = Array.from({ length: end - start }, (_, index) => start + index).filter(isBar);
  return bars.slice(1).map((bar, index) => ({ start: bars[index] + 1, end: bar }));
}
