/** An animated picture of what a facet is, shown before the first search. */

import { h, hue, svg } from "./dom.js";

const SENTENCES = [
  ["Plants make sugar from sunlight.", "plants"],
  ["The first piano was built in Florence.", "pianos"],
  ["Income taxes are due in April.", "taxes"],
];
const POINTS = [[70, 40], [215, 55], [165, 150]];
const QUESTION = [150, 132];

/** A card with the picture, which is animated for a few seconds. */
export function intro() {
  return h(
    "section",
    { class: "card intro", "aria-labelledby": "intro" },
    h(
      "div",
      { class: "stack tight" },
      h("h2", { id: "intro" }, "One text, several facets"),
      h("p", { class: "passage" }, SENTENCES.map(([text], index) => [h("span", { class: `step ${hue(index)}` }, text), " "])),
      h("p", { class: "small" }, "A text about three things has three points instead of one between them. A question is close to the point that answers it:"),
      h("p", { class: "step question" }, "\u201cWhen must I pay the state?\u201d"),
      h("p", { class: "small" }, "To search texts of your own, drop a file anywhere on this page, or ", h("a", { href: "#add" }, "add files"), "."),
    ),
    picture(),
  );
}

function picture() {
  const [x, y] = QUESTION;
  const middle = [0, 1].map((axis) => POINTS.reduce((sum, point) => sum + point[axis], 0) / POINTS.length);
  return svg(
    "svg",
    { viewBox: "0 0 290 190", role: "img", "aria-label": "Three points, one for each facet. The query is next to the point of taxes and far from the mean of the three." },
    svg("circle", { class: "mean", cx: middle[0], cy: middle[1], r: 6 }),
    svg("text", { class: "mean", x: middle[0] + 10, y: middle[1] + 4 }, "one vector"),
    svg("line", { class: "meets", x1: x, y1: y, x2: POINTS[2][0], y2: POINTS[2][1] }),
    POINTS.map(([cx, cy], index) => [
      svg("circle", { class: `point ${hue(index)}`, cx, cy, r: 9 }),
      svg("text", { class: `point ${hue(index)}`, x: cx + 14, y: cy + 5 }, SENTENCES[index][1]),
    ]),
    svg("circle", { class: "asked", cx: x, cy: y, r: 6 }),
    svg("text", { class: "asked", x: x - 12, y: y + 4, "text-anchor": "end" }, "question"),
  );
}
