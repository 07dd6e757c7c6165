/** A scatter chart on a canvas that can be zoomed, moved and read with pointer, touch or keyboard. */

import { h, hue } from "./dom.js";

const RADIUS = 4.5;
const MANY = 3_000; // charts with more points draw them as small squares
const SMALL = 2;
const REACH = 14; // largest distance in pixels that hits a point
const MARGIN = 28;
const NUM_HUES = 8;
const ALL = { scale: 1, x: 0, y: 0 };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ZOOMS = { "+": 1.4, "=": 1.4, "-": 1 / 1.4 };

export class Chart {
  #view = ALL;
  #theme = null;
  #chosen = null;
  #hovered = null;
  #drag = null;
  #frame = 0;

  /**
   * Points have `x` and `y` of any range, and a `hue`; labels also a `text`, most important first: they may be hidden.
   * Calls `on.choose` with a point chosen by press or key, `on.hover` with the point under the pointer or null, and
   * `on.list` with the visible points.
   */
  constructor(label, points, labels, on) {
    Object.assign(this, { points, labels, on });
    this.bounds = bounds(points);
    // A canvas does not support light-dark(): these elements compute its colours.
    this.paints = Array.from({ length: NUM_HUES }, (_, number) => h("i", { class: `paint ${hue(number)}` }));
    this.canvas = h("canvas", { class: "chart", tabindex: 0, role: "application", "aria-label": label }, this.paints);
    this.context = this.canvas.getContext("2d");
    this.#listen();
    this.redraw = () => {
      cancelAnimationFrame(this.#frame);
      this.#frame = requestAnimationFrame(() => this.#draw());
    };
    this.canvas.ontransitionend = this.redraw; // another theme: its text colour has changed
    new ResizeObserver(this.redraw).observe(this.canvas); // also draws once
  }

  /** Highlights one theme; null: none. */
  focusTheme(theme) {
    this.#theme = theme;
    this.redraw();
  }

  zoom(factor, [x, y] = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2]) {
    const scale = Math.min(40, Math.max(1, this.#view.scale * factor));
    const ratio = scale / this.#view.scale;
    this.#view = { scale, x: x - (x - this.#view.x) * ratio, y: y - (y - this.#view.y) * ratio };
    this.redraw();
  }

  reset() {
    this.#view = ALL;
    this.redraw();
  }

  choose(point) {
    if (!point) return;
    this.#chosen = point;
    this.redraw();
    this.on.choose(point);
  }

  list() {
    this.on.list(this.points.filter((point) => this.#isVisible(this.#position(point))));
  }

  #position({ x, y }) {
    const { left, top, width, height } = this.bounds;
    const { scale, x: dx, y: dy } = this.#view;
    const place = (share, pixels) => (MARGIN + share * (pixels - 2 * MARGIN)) * scale;
    return [place((x - left) / width, this.canvas.clientWidth) + dx, place((y - top) / height, this.canvas.clientHeight) + dy];
  }

  #isVisible([x, y]) {
    return x >= -RADIUS && y >= -RADIUS && x <= this.canvas.clientWidth + RADIUS && y <= this.canvas.clientHeight + RADIUS;
  }

  #draw() {
    const { canvas, context } = this;
    const ratio = devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const hues = this.paints.map((paint) => getComputedStyle(paint).color);
    const style = getComputedStyle(canvas);
    const order = this.points.toSorted((first, second) => (first.hue === this.#theme) - (second.hue === this.#theme));
    for (const point of order) {
      context.globalAlpha = this.#theme === null || point.hue === this.#theme ? 0.82 : 0.12;
      this.#dot(point, hues);
    }
    context.globalAlpha = 1;
    this.#write(hues, style);
    context.strokeStyle = style.color;
    context.lineWidth = 2.5;
    for (const point of [this.#hovered, this.#chosen].filter(Boolean)) {
      this.#circle(this.#position(point), RADIUS + 3.5);
      context.stroke();
    }
  }

  #dot(point, hues) {
    const [x, y] = this.#position(point);
    if (!this.#isVisible([x, y])) return;
    this.context.fillStyle = hues[point.hue % NUM_HUES];
    if (this.points.length > MANY) {
      const side = Math.min(RADIUS, SMALL * Math.sqrt(this.#view.scale));
      this.context.fillRect(x - side / 2, y - side / 2, side, side);
    } else {
      this.#circle([x, y], RADIUS);
      this.context.fill();
    }
  }

  #circle([x, y], radius) {
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
  }

  #write(hues, style) {
    const { context, canvas } = this;
    const taken = [];
    context.font = `600 13px ${style.fontFamily}`;
    context.textAlign = "center";
    context.lineJoin = "round";
    context.lineWidth = 5;
    context.strokeStyle = style.backgroundColor;
    for (const label of this.labels) {
      if (this.#theme !== null && label.hue !== this.#theme) continue;
      const [x, y] = this.#position(label);
      const half = context.measureText(label.text).width / 2 + 4;
      const middle = Math.min(Math.max(x, half), canvas.clientWidth - half);
      const free = [0, -18, 18, -36, 36].find((shift) => !taken.some((box) => Math.abs(box.x - middle) < box.half + half && Math.abs(box.y - y - shift) < 17));
      if (free === undefined) continue;
      taken.push({ x: middle, y: y + free, half });
      context.strokeText(label.text, middle, y + free);
      context.fillStyle = hues[label.hue % NUM_HUES];
      context.fillText(label.text, middle, y + free);
    }
  }

  #listen() {
    const { canvas } = this;
    canvas.onpointerdown = (event) => {
      this.#drag = { from: at(event), moved: false, view: this.#view };
      canvas.setPointerCapture(event.pointerId);
    };
    canvas.onpointermove = (event) => this.#moved(at(event));
    canvas.onpointerup = (event) => {
      if (this.#drag && !this.#drag.moved) this.choose(this.#nearest(at(event)));
      this.#drag = null;
    };
    canvas.onpointerleave = () => this.#hover(null);
    canvas.onwheel = (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return; // scrolls the page unless the map has focus
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), at(event));
    };
    canvas.onkeydown = (event) => this.#key(event);
  }

  #moved([x, y]) {
    if (!this.#drag) return this.#hover(this.#nearest([x, y]));
    const { from, view } = this.#drag;
    const [dx, dy] = [x - from[0], y - from[1]];
    this.#drag.moved ||= Math.hypot(dx, dy) > 4;
    if (this.#drag.moved) this.#view = { ...view, x: view.x + dx, y: view.y + dy };
    return this.redraw();
  }

  #key(event) {
    if (event.key in ARROWS) this.choose(this.#toward(ARROWS[event.key]));
    else if (event.key in ZOOMS) this.zoom(ZOOMS[event.key]);
    else if (event.key === "0") this.reset();
    else if (event.key.toLowerCase() === "s") this.list();
    else return;
    event.preventDefault();
  }

  #nearest([x, y], within = REACH, distance = Math.hypot) {
    let [best, least] = [null, within];
    for (const point of this.points) {
      const [px, py] = this.#position(point);
      const far = distance(px - x, py - y);
      if (point !== this.#chosen && far < least) [best, least] = [point, far];
    }
    return best;
  }

  /** The closest point in a direction from the chosen one, or the point in the middle. */
  #toward([dx, dy]) {
    if (!this.#chosen) return this.#nearest([this.canvas.clientWidth / 2, this.canvas.clientHeight / 2], Infinity);
    return this.#nearest(this.#position(this.#chosen), Infinity, (x, y) => {
      const along = x * dx + y * dy;
      return along > 0 ? along + 2 * Math.abs(x * dy + y * dx) : Infinity;
    });
  }

  #hover(point) {
    if (point === this.#hovered) return;
    this.#hovered = point;
    this.canvas.classList.toggle("pointing", point !== null);
    this.redraw();
    this.on.hover(point);
  }
}

function at(event) {
  return [event.offsetX, event.offsetY];
}

function bounds(points) {
  const edge = (axis, choose, start) => points.reduce((edge, point) => choose(edge, point[axis]), start);
  const [left, top] = [edge("x", Math.min, Infinity), edge("y", Math.min, Infinity)];
  return { left, top, width: edge("x", Math.max, -Infinity) - left || 1, height: edge("y", Math.max, -Infinity) - top || 1 };
}
