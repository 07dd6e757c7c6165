/** A scatter chart on a canvas that can be zoomed, moved and read with pointer, touch or keyboard. */

import { h, hue } from "./dom.js";

const RADIUS = 4.5;
const MANY = 3_000; // charts with more points draw them as small squares
const SMALL = 2;
const REACH = 14; // largest distance in pixels that hits a point
const MARGIN = 28;
const NUM_HUES = 8;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * Dispatches "choose" with a point chosen by press or key, "hover" with the point under the pointer or null, "area" with
 * the points inside a drawn line, and "mode" with whether the next line selects an area.
 */
export class Chart extends EventTarget {
  /** @type {{x: number, y: number, hue: number, key: string}[]} Coordinates of any range. */
  points = [];
  #view = { scale: 1, x: 0, y: 0 };
  #theme = null;
  #labels = [];
  #ring = null; // points of the line around an area
  #selecting = false;
  #chosen = null;
  #hovered = null;
  #drag = null;
  #frame = 0;

  constructor(label) {
    super();
    // A canvas does not support light-dark(): these elements compute its colours.
    this.paints = Array.from({ length: NUM_HUES }, (_, number) => h("i", { class: `paint ${hue(number)}` }));
    this.canvas = h("canvas", { class: "chart", tabindex: 0, role: "application", "aria-label": label }, this.paints);
    this.context = this.canvas.getContext("2d");
    this.#listen();
    this.redraw = () => {
      cancelAnimationFrame(this.#frame);
      this.#frame = requestAnimationFrame(() => this.#draw());
    };
    this.resized = new ResizeObserver(this.redraw);
    this.resized.observe(this.canvas);
    document.addEventListener("themechange", this.redraw);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", this.redraw);
  }

  close() {
    this.resized.disconnect();
    document.removeEventListener("themechange", this.redraw);
    this.dark.removeEventListener("change", this.redraw);
  }

  /** Replaces the points; zoom and position stay. */
  show(points) {
    const chosen = this.#chosen && points.find((point) => point.key === this.#chosen.key);
    this.points = points;
    this.#chosen = chosen ?? null;
    this.#hovered = null;
    this.#bounds = bounds(points);
    this.redraw();
  }

  /** Sets labels, most important first; overlapping ones are moved or hidden. */
  name(labels) {
    this.#labels = labels;
    this.redraw();
  }

  /** Highlights one theme; null: none. */
  focusTheme(theme) {
    this.#theme = theme;
    this.redraw();
  }

  /** Toggles whether the next drawn line selects an area. */
  selectArea() {
    this.#selecting = !this.#selecting;
    this.canvas.classList.toggle("selecting", this.#selecting);
    this.dispatchEvent(new CustomEvent("mode", { detail: this.#selecting }));
  }

  zoom(factor, center = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2]) {
    const scale = Math.min(40, Math.max(1, this.#view.scale * factor));
    const ratio = scale / this.#view.scale;
    this.#view = {
      scale,
      x: center[0] - (center[0] - this.#view.x) * ratio,
      y: center[1] - (center[1] - this.#view.y) * ratio,
    };
    this.redraw();
  }

  reset() {
    this.#view = { scale: 1, x: 0, y: 0 };
    this.redraw();
  }

  #bounds = bounds([]);

  #position(point) {
    const { left, top, width, height } = this.#bounds;
    const across = this.canvas.clientWidth - 2 * MARGIN;
    const down = this.canvas.clientHeight - 2 * MARGIN;
    const x = MARGIN + ((point.x - left) / width) * across;
    const y = MARGIN + ((point.y - top) / height) * down;
    return [x * this.#view.scale + this.#view.x, y * this.#view.scale + this.#view.y];
  }

  #draw() {
    const { canvas, context } = this;
    const ratio = devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const hues = this.paints.map((paint) => getComputedStyle(paint).color);
    for (const point of this.#order()) this.#dot(point, hues);
    const ink = getComputedStyle(canvas).color;
    if (this.#ring) this.#line(ink);
    this.#write(hues, getComputedStyle(canvas));
    for (const point of [this.#hovered, this.#chosen]) if (point) this.#circle(point, RADIUS + 3.5, ink, 2.5);
  }

  #write(hues, style) {
    const { context, canvas } = this;
    const taken = [];
    context.font = `600 13px ${style.fontFamily}`;
    context.textAlign = "center";
    context.lineJoin = "round";
    for (const label of this.#labels) {
      if (this.#theme !== null && label.hue !== this.#theme) continue;
      const [x, y] = this.#position(label);
      const half = context.measureText(label.text).width / 2 + 4;
      const middle = Math.min(Math.max(x, half), canvas.clientWidth - half);
      const free = [0, -18, 18, -36, 36].find((shift) => !taken.some((box) => Math.abs(box.x - middle) < box.half + half && Math.abs(box.y - y - shift) < 17));
      if (free === undefined) continue;
      taken.push({ x: middle, y: y + free, half });
      context.lineWidth = 5;
      context.strokeStyle = style.backgroundColor;
      context.strokeText(label.text, middle, y + free);
      context.fillStyle = hues[label.hue % NUM_HUES];
      context.fillText(label.text, middle, y + free);
    }
  }

  /** Points in drawing order: the highlighted theme last, so that it is on top. */
  #order() {
    if (this.#theme === null) return this.points;
    const isFocused = (point) => point.hue === this.#theme;
    return [...this.points.filter((point) => !isFocused(point)), ...this.points.filter(isFocused)];
  }

  #dot(point, hues) {
    const dimmed = this.#theme !== null && point.hue !== this.#theme;
    const [x, y] = this.#position(point);
    const { context, canvas } = this;
    if (x < -RADIUS || y < -RADIUS || x > canvas.clientWidth + RADIUS || y > canvas.clientHeight + RADIUS) return;
    context.globalAlpha = dimmed ? 0.12 : 0.82;
    context.fillStyle = hues[point.hue % NUM_HUES];
    if (this.points.length > MANY) {
      const side = Math.min(RADIUS, SMALL * Math.sqrt(this.#view.scale));
      context.fillRect(x - side / 2, y - side / 2, side, side);
    } else {
      context.beginPath();
      context.arc(x, y, RADIUS, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  #line(color) {
    const { context } = this;
    context.strokeStyle = color;
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    context.stroke(outline(this.#ring));
    context.setLineDash([]);
  }

  #circle(point, radius, color, width) {
    const [x, y] = this.#position(point);
    this.context.strokeStyle = color;
    this.context.lineWidth = width;
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.context.stroke();
  }

  #listen() {
    const on = (event, listener, options) => this.canvas.addEventListener(event, listener, options);
    on("pointerdown", (event) => {
      this.#drag = { from: at(event), moved: false, view: this.#view };
      if (this.#selecting || event.shiftKey) this.#ring = [at(event)];
      this.canvas.setPointerCapture(event.pointerId);
    });
    on("pointermove", (event) => this.#moved(event));
    on("pointerup", (event) => {
      const [drag, ring] = [this.#drag, this.#ring];
      this.#drag = this.#ring = null;
      if (drag?.moved && ring) this.#area(ring);
      else if (drag && !drag.moved) this.choose(this.#nearest(at(event)));
    });
    on("pointerleave", () => this.#hover(null));
    on("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== this.canvas) return; // scrolls the page unless the map has focus
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), at(event));
    }, { passive: false });
    on("keydown", (event) => this.#key(event));
  }

  #moved(event) {
    const [x, y] = at(event);
    if (!this.#drag) return this.#hover(this.#nearest([x, y]));
    const [dx, dy] = [x - this.#drag.from[0], y - this.#drag.from[1]];
    this.#drag.moved ||= Math.hypot(dx, dy) > 4;
    if (!this.#drag.moved) return undefined;
    if (this.#ring) {
      this.#ring.push([x, y]);
      return this.redraw();
    }
    this.#view = { ...this.#drag.view, x: this.#drag.view.x + dx, y: this.#drag.view.y + dy };
    return this.redraw();
  }

  #key(event) {
    const steps = { "+": 1.4, "=": 1.4, "-": 1 / 1.4 };
    if (event.key in ARROWS) this.choose(this.#toward(ARROWS[event.key]));
    else if (event.key in steps) this.zoom(steps[event.key]);
    else if (event.key === "0") this.reset();
    else if (event.key.toLowerCase() === "s") this.#area([[0, 0], [this.canvas.clientWidth, 0], [this.canvas.clientWidth, this.canvas.clientHeight], [0, this.canvas.clientHeight]]);
    else return;
    event.preventDefault();
  }

  #nearest([x, y]) {
    let best = null;
    let least = REACH;
    for (const point of this.points) {
      const [px, py] = this.#position(point);
      const distance = Math.hypot(px - x, py - y);
      if (distance < least) [best, least] = [point, distance];
    }
    return best;
  }

  /** The closest point in a direction from the chosen one, or the point in the middle. */
  #toward([dx, dy]) {
    const [x, y] = this.#chosen ? this.#position(this.#chosen) : [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
    let best = this.#chosen;
    let least = Infinity;
    for (const point of this.points) {
      const [px, py] = this.#position(point);
      const along = (px - x) * dx + (py - y) * dy;
      const aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (this.#chosen && along <= 0) continue;
      const distance = this.#chosen ? along + 2 * aside : Math.hypot(px - x, py - y);
      if (point !== this.#chosen && distance < least) [best, least] = [point, distance];
    }
    return best;
  }

  /** Selects the points inside a line; the key S selects the visible points. */
  #area(ring) {
    const path = outline(ring);
    const { context } = this;
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    const inside = this.points.filter((point) => context.isPointInPath(path, ...this.#position(point)));
    context.restore();
    if (this.#selecting) this.selectArea();
    this.redraw();
    this.dispatchEvent(new CustomEvent("area", { detail: inside }));
  }

  /** Chooses a point. */
  choose(point) {
    if (!point) return;
    this.#chosen = point;
    this.redraw();
    this.dispatchEvent(new CustomEvent("choose", { detail: point }));
  }

  #hover(point) {
    if (point === this.#hovered) return;
    this.#hovered = point;
    this.canvas.classList.toggle("pointing", point !== null);
    this.redraw();
    this.dispatchEvent(new CustomEvent("hover", { detail: point }));
  }
}

function outline(ring) {
  const path = new Path2D();
  ring.forEach(([x, y], index) => (index ? path.lineTo(x, y) : path.moveTo(x, y)));
  path.closePath();
  return path;
}

function at(event) {
  return [event.offsetX, event.offsetY];
}

function bounds(points) {
  const [xs, ys] = [points.map((point) => point.x), points.map((point) => point.y)];
  const [left, top] = [xs.reduce((a, b) => Math.min(a, b), Infinity), ys.reduce((a, b) => Math.min(a, b), Infinity)];
  const [right, bottom] = [xs.reduce((a, b) => Math.max(a, b), -Infinity), ys.reduce((a, b) => Math.max(a, b), -Infinity)];
  return { left, top, width: right - left || 1, height: bottom - top || 1 };
}
