// A plan as a picture: each operator is a box, below the one that reads its rows. Boxes have elements while they are seen. From afar all of
// them are a few shapes without letters.

import { el, svg } from "./dom.js";
import { bytes, isNothing, nanoseconds, percent, things } from "./text.js";

const [WIDTH, HEIGHT, BESIDE, BELOW, EDGE] = [232, 62, 20, 34, 12];
/** The least and the largest scale, that of a button's step, the least one that a plan is shown in at first, and that below which letters are not read. */
const [SMALLEST, LARGEST, STEP, FIRST, FAR] = [0.04, 2, 1.25, 0.7, 0.4];

/** How many tints boxes have from afar. */
const TINTS = 8;

/** What the heat of an operator is of. */
const HEATS = {
  time: { of: (node) => node.busy_ns ?? 0, text: (node) => nanoseconds(node.busy_ns ?? null) },
  bytes: { of: (node) => (node.kept_bytes ?? 0) + (node.bytes_out ?? 0), text: (node) => bytes((node.kept_bytes ?? 0) + (node.bytes_out ?? 0)) },
};

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** A picture of a plan, whose figures change. `choose` is called with the number of a box that is pressed, or null. */
export class Graph {
  constructor(choose) {
    Object.assign(this, { choose, chosen: null, focused: 0, heat: "time", shape: "", scale: 1, boxes: new Map() });
    this.ways = svg("path", { class: "way" });
    this.drawn = svg("g");
    this.shapes = Array.from({ length: TINTS + 1 }, (_, tint) => svg("path", { class: tint === 0 ? "ground" : "tint" }));
    this.shapes.forEach((shape, tint) => tint > 0 && (shape.style.opacity = tint / TINTS));
    this.picture = svg("svg", { class: "plan", role: "group", "aria-label": "Operators" }, this.ways, svg("g", { class: "far" }, ...this.shapes), this.drawn);
    this.element = el("div", { class: "graph", tabindex: "0", role: "region", "aria-label": "Plan" }, this.picture);
    const step = (label, text, to) => el("button", { type: "button", "aria-label": label, title: label, onclick: () => this.zoom(to()) }, text);
    this.zooms = el(
      "div",
      { class: "choice", role: "group", "aria-label": "Size" },
      step("Smaller", "−", () => this.scale / STEP), step("All of it", "Fit", () => this.fitting()), step("Larger", "+", () => this.scale * STEP),
    );
    this.picture.addEventListener("click", (event) => this.press(this.at(event)));
    this.element.addEventListener("keydown", (event) => this.key(event) && event.preventDefault());
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** Shows these nodes: lays them out anew if they are others. */
  show({ nodes, places }) {
    this.nodes = nodes;
    const shape = JSON.stringify(nodes.map((node) => [node.operation, node.inputs]));
    if (shape !== this.shape) {
      this.shape = shape;
      this.lay(places);
    }
    this.warm();
  }

  lay(places) {
    this.places = places.map(([column, row]) => ({ left: EDGE + column * (WIDTH + BESIDE), top: EDGE + row * (HEIGHT + BELOW) }));
    this.width = this.places.reduce((most, { left }) => Math.max(most, left + WIDTH), 0) + EDGE;
    this.height = this.places.reduce((most, { top }) => Math.max(most, top + HEIGHT), 0) + EDGE;
    this.picture.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.focused = 0;
    this.clear();
    const seen = this.element.clientWidth;
    this.zoom(Math.min(1, Math.max(FIRST, seen / this.width)));
    this.element.scrollTo((this.places[0].left + WIDTH / 2) * this.scale - seen / 2, 0);
  }

  /** Draws the ways of rows, from operators to those that read them: all of them, straight, from afar, and else those of which an end is seen. */
  way() {
    const [seen, isFar] = [this.boxes, this.isFar];
    const ends = ({ id }, input) => [this.places[id].left + WIDTH / 2, this.places[id].top + HEIGHT, this.places[input].left + WIDTH / 2, this.places[input].top];
    const way = ([x, y, from, top]) => (isFar ? `M${from} ${top}L${x} ${y}` : `M${from} ${top}C${from} ${(y + top) / 2} ${x} ${(y + top) / 2} ${x} ${y + 2}`);
    const of = (node) => node.inputs.filter((input) => isFar || seen.has(node.id) || seen.has(input)).map((input) => way(ends(node, input)));
    this.ways.setAttribute("d", this.nodes.flatMap(of).join(""));
  }

  get isFar() {
    return this.scale < FAR;
  }

  /** The scale in which all of the plan is seen. */
  fitting() {
    return Math.min(1, this.element.clientWidth / this.width, this.element.clientHeight / this.height);
  }

  /** Changes the scale, but not the place of what is at this point of the element. */
  zoom(scale, x = this.element.clientWidth / 2, y = this.element.clientHeight / 2) {
    const { element, picture } = this;
    const { isFar } = this;
    const beside = Math.max(0, (element.clientWidth - this.width * this.scale) / 2);
    const [left, top] = [(element.scrollLeft + x - beside) / this.scale, (element.scrollTop + y) / this.scale];
    this.scale = Math.min(LARGEST, Math.max(SMALLEST, scale));
    if (isFar !== this.isFar) {
      this.clear();
      this.warm();
    }
    picture.setAttribute("width", this.width * this.scale);
    picture.setAttribute("height", this.height * this.scale);
    element.scrollTo(left * this.scale - x, top * this.scale - y);
    this.draw();
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const edge = this.element.getBoundingClientRect();
    this.zoom(this.scale * Math.exp(-event.deltaY / 300), event.clientX - edge.left, event.clientY - edge.top);
  }

  clear() {
    this.boxes.clear();
    this.drawnWays = null;
    this.drawn.replaceChildren();
  }

  /** Gives elements to the boxes that are seen, or nearly; from afar to the one that has the focus. */
  draw() {
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.element;
    const [left, top] = [scrollLeft / this.scale - WIDTH, scrollTop / this.scale - HEIGHT];
    const [right, bottom] = [left + clientWidth / this.scale + 2 * WIDTH, top + clientHeight / this.scale + 2 * HEIGHT];
    let isOther = this.drawnWays !== this.isFar;
    (this.places ?? []).forEach((place, id) => {
      const isSeen = this.isFar ? id === this.focused : place.left + WIDTH > left && place.left < right && place.top + HEIGHT > top && place.top < bottom;
      const box = this.boxes.get(id);
      const isGone = !isSeen && box && box.element !== document.activeElement;
      isOther ||= (isSeen && !box) || isGone;
      if (isSeen && !box) this.add(id);
      else if (isGone) {
        box.element.remove();
        this.boxes.delete(id);
      }
    });
    if (isOther && this.places) this.way();
    this.drawnWays = this.isFar;
  }

  add(id) {
    const [node, { left, top }] = [this.nodes[id], this.places[id]];
    const [tint, edge] = [svg("rect", { class: "tint", width: WIDTH, height: HEIGHT, rx: 5 }), svg("rect", { class: "edge", width: 4, height: HEIGHT, rx: 2 })];
    const element = svg(
      "g",
      { class: "box", transform: `translate(${left} ${top})`, role: "button", "data-id": id },
      svg("title", null, node.operation),
      svg("rect", { class: "ground", width: WIDTH, height: HEIGHT, rx: 5 }),
      tint,
      edge,
    );
    const box = { element, tint, edge };
    if (!this.isFar) {
      const [first, second] = split(node.operation);
      box.figure = svg("text", { x: 14, y: 51, class: "figure" });
      box.share = svg("text", { x: WIDTH - 10, y: 51, class: "figure", "text-anchor": "end" });
      box.rank = svg("text", { x: 0, y: 4, "text-anchor": "middle" });
      box.mark = svg("g", { class: "rank", transform: `translate(${WIDTH - 17} 17)` }, svg("circle", { r: 9 }), box.rank);
      element.append(
        svg("svg", { x: 14, y: 0, width: WIDTH - 22, height: HEIGHT }, svg("text", { y: 19, class: "operation" }, cut(first, 28)), svg("text", { y: 35, class: "of" }, cut(second, 38))),
        box.figure, box.share, box.mark,
      );
    }
    this.boxes.set(id, box);
    this.drawn.append(element);
    this.fill(id, box);
  }

  /** Colours the boxes by time or by bytes. */
  warm() {
    this.all = this.nodes.reduce((sum, node) => sum + HEATS[this.heat].of(node), 0) || 1;
    this.boxes.forEach((box, id) => this.fill(id, box));
    const shapes = this.shapes.map(() => "");
    if (this.isFar) {
      this.nodes.forEach((node, id) => {
        const box = `M${this.places[id].left} ${this.places[id].top}h${WIDTH}v${HEIGHT}h${-WIDTH}z`;
        const tint = Math.round(this.warmth(node) * TINTS);
        shapes[0] += box;
        if (tint > 0) shapes[tint] += box;
      });
    }
    this.shapes.forEach((shape, tint) => shape.setAttribute("d", shapes[tint]));
  }

  /** How much of the heat is an operator's, for its tint. */
  warmth(node) {
    return Math.min(1, (1.6 * HEATS[this.heat].of(node)) / this.all);
  }

  fill(id, { element, tint, edge, figure, share, rank, mark }) {
    const [node, heat] = [this.nodes[id], HEATS[this.heat]];
    const part = heat.of(node) / this.all;
    tint.style.opacity = this.warmth(node).toFixed(3);
    edge.style.opacity = part > 0 ? (0.25 + 0.75 * Math.min(1, part * 2)).toFixed(3) : "0";
    element.classList.toggle("chosen", this.chosen === id);
    element.classList.toggle("worst", !isNothing(node.rank));
    element.setAttribute("aria-pressed", String(this.chosen === id));
    element.setAttribute("tabindex", this.focused === id ? "0" : "-1");
    if (!figure) return;
    figure.textContent = node.waiting ? `${things(node.waiting.epochs, "epoch")} to write` : `${heat.text(node)} · ${things(node.rows_out, "row")}`;
    share.textContent = node.waiting ? "" : percent(part);
    rank.textContent = node.rank ?? "";
    mark.style.display = isNothing(node.rank) ? "none" : "";
  }

  /** The box at the place of an event. */
  at({ target, clientX, clientY }) {
    const box = target.closest(".box");
    if (box) return Number(box.dataset.id);
    const edge = this.picture.getBoundingClientRect();
    const [x, y] = [(clientX - edge.left) / this.scale, (clientY - edge.top) / this.scale];
    return this.places.findIndex(({ left, top }) => x >= left && x <= left + WIDTH && y >= top && y <= top + HEIGHT);
  }

  press(id) {
    if (id < 0) return;
    this.focused = id;
    this.draw();
    this.choose(this.chosen === id ? null : id);
  }

  /** Scrolls to a box, and gives it the focus. */
  reveal(id) {
    const { element, scale } = this;
    const [left, top] = [this.places[id].left * scale, this.places[id].top * scale];
    const isSeen = (from, size, at, seen) => from >= at && from + size <= at + seen;
    if (!isSeen(left, WIDTH * scale, element.scrollLeft, element.clientWidth) || !isSeen(top, HEIGHT * scale, element.scrollTop, element.clientHeight)) {
      element.scrollTo(left + (WIDTH * scale - element.clientWidth) / 2, top + (HEIGHT * scale - element.clientHeight) / 2);
    }
    this.focused = id;
    this.draw();
    this.warm();
    this.boxes.get(id).element.focus({ preventScroll: true });
  }

  /** Answers a key, and returns whether it does something. */
  key({ key, target, ctrlKey, metaKey, altKey }) {
    if (ctrlKey || metaKey || altKey || !this.places) return false;
    const scale = { "+": this.scale * STEP, "-": this.scale / STEP, 0: this.fitting() }[key];
    if (scale) this.zoom(scale);
    else if (target === this.element) return false;
    else if (key === "Enter" || key === " ") this.press(this.at({ target }));
    else {
      const next = this.beside(this.at({ target }), key);
      if (isNothing(next)) return key.startsWith("Arrow");
      this.reveal(next);
    }
    return true;
  }

  /** The box to which an arrow leads: up to its reader, down to its first input, and to those beside it. */
  beside(id, key) {
    if (key === "ArrowUp") return this.nodes.find((node) => node.inputs.includes(id))?.id;
    if (key === "ArrowDown") return this.nodes[id].inputs[0];
    const way = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (!way) return null;
    const { left, top } = this.places[id];
    const far = (other) => (this.places[other].left - left) * way;
    const row = this.nodes.map((node) => node.id).filter((other) => this.places[other].top === top && far(other) > 0);
    return row.reduce((nearest, other) => (nearest === null || far(other) < far(nearest) ? other : nearest), null);
  }
}

/** The name of an operation, and what it is of. */
function split(operation) {
  const found = /^((?:(?:left|right|full|semi|anti|inner|cross|band) )?[a-z-]+(?: rows| changes)?)\s*(.*)$/s.exec(operation);
  return found ? [found[1], found[2].replace(/\s+/g, " ")] : [operation, ""];
}
