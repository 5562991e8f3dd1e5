// A plan as a picture: each operator is a box, below the one that reads its rows.

import { el, svg } from "./dom.js";
import { bytes, count, nanoseconds, percent } from "./text.js";

const [WIDTH, HEIGHT, BESIDE, BELOW, EDGE] = [232, 62, 20, 34, 12];

/** The boxes' left and top edges: a layer for each distance from the topmost one, inputs beside each other below their reader. */
export function place(nodes) {
  const layers = nodes.map(() => 0);
  const readers = nodes.map(() => null);
  const read = new Set(nodes.flatMap((node) => node.inputs));
  const roots = nodes.filter((node) => !read.has(node.id)).map((node) => node.id);
  const order = [];
  const waiting = nodes.map(() => 0);
  nodes.forEach((node) => node.inputs.forEach((input) => waiting[input]++));
  const next = [...roots];
  while (next.length > 0) {
    const id = next.shift();
    order.push(id);
    for (const input of nodes[id].inputs) {
      if (layers[input] <= layers[id]) [layers[input], readers[input]] = [layers[id] + 1, id];
      if (--waiting[input] === 0) next.push(input);
    }
  }
  const below = nodes.map(() => []);
  order.forEach((id) => readers[id] !== null && below[readers[id]].push(id));
  const widths = nodes.map(() => WIDTH);
  for (const id of [...order].reverse()) {
    const inner = below[id].reduce((sum, input) => sum + widths[input] + BESIDE, -BESIDE);
    widths[id] = Math.max(WIDTH, inner);
  }
  const lefts = nodes.map(() => EDGE);
  const set = (ids, left) => ids.reduce((at, id) => ((lefts[id] = at), at + widths[id] + BESIDE), left);
  set(roots, EDGE);
  for (const id of order) {
    const inner = below[id].reduce((sum, input) => sum + widths[input] + BESIDE, -BESIDE);
    set(below[id], lefts[id] + (widths[id] - inner) / 2);
  }
  return nodes.map((_, id) => ({ left: lefts[id] + (widths[id] - WIDTH) / 2, top: EDGE + layers[id] * (HEIGHT + BELOW) }));
}

/** What the heat of an operator is of. */
const HEATS = {
  time: { of: (node) => node.busy_ns ?? 0, text: (node) => nanoseconds(node.busy_ns ?? null) },
  bytes: { of: (node) => (node.kept_bytes ?? 0) + (node.bytes_out ?? 0), text: (node) => bytes((node.kept_bytes ?? 0) + (node.bytes_out ?? 0)) },
};

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** A picture of a plan, whose figures change. `choose` is called with the number of a box that is clicked, or null. */
export class Graph {
  constructor(choose) {
    this.choose = choose;
    this.chosen = null;
    this.heat = "time";
    this.shape = "";
    this.picture = svg("svg", { class: "plan", role: "group", "aria-label": "Operators" });
    this.element = el("div", { class: "graph", tabindex: "0", role: "region", "aria-label": "Plan" }, this.picture);
  }

  /** Shows these nodes: draws them anew if they are others, and their figures otherwise. */
  show(nodes) {
    const shape = JSON.stringify(nodes.map((node) => [node.operation, node.inputs]));
    this.nodes = nodes;
    if (shape !== this.shape) {
      this.shape = shape;
      this.draw();
    }
    this.warm();
  }

  draw() {
    const places = place(this.nodes);
    const width = Math.max(...places.map(({ left }) => left + WIDTH), 0) + EDGE;
    const height = Math.max(...places.map(({ top }) => top + HEIGHT), 0) + EDGE;
    const ways = this.nodes.flatMap((node) =>
      node.inputs.map((input) => {
        const [x, y] = [places[node.id].left + WIDTH / 2, places[node.id].top + HEIGHT];
        const [from, top] = [places[input].left + WIDTH / 2, places[input].top];
        const middle = (y + top) / 2;
        return svg("path", { class: "way", d: `M${from} ${top}C${from} ${middle} ${x} ${middle} ${x} ${y + 2}` });
      }),
    );
    this.boxes = this.nodes.map((node) => this.box(node, places[node.id]));
    this.picture.replaceChildren(...ways, ...this.boxes.map((box) => box.element));
    this.picture.setAttribute("width", width);
    this.picture.setAttribute("height", height);
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  }

  box(node, { left, top }) {
    const [tint, edge, figure, share] = [
      svg("rect", { class: "tint", width: WIDTH, height: HEIGHT, rx: 5 }),
      svg("rect", { class: "edge", width: 4, height: HEIGHT, rx: 2 }),
      svg("text", { x: 14, y: 51, class: "figure" }),
      svg("text", { x: WIDTH - 10, y: 51, class: "figure", "text-anchor": "end" }),
    ];
    const press = () => this.choose(this.chosen === node.id ? null : node.id);
    const [first, second] = split(node.operation);
    const element = svg(
      "g",
      {
        class: "box", transform: `translate(${left} ${top})`, tabindex: "0", role: "button", "aria-pressed": "false", onclick: press,
        onkeydown: (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          press();
        },
      },
      svg("title", null, node.operation),
      svg("rect", { class: "ground", width: WIDTH, height: HEIGHT, rx: 5 }),
      tint,
      edge,
      svg(
        "svg",
        { x: 14, y: 0, width: WIDTH - 22, height: HEIGHT },
        svg("text", { y: 19, class: "operation" }, cut(first, 32)),
        svg("text", { y: 35, class: "of" }, cut(second, 38)),
      ),
      figure,
      share,
    );
    return { element, tint, edge, figure, share };
  }

  /** Colours the boxes by time or by bytes. */
  warm() {
    const heat = HEATS[this.heat];
    const all = this.nodes.reduce((sum, node) => sum + heat.of(node), 0) || 1;
    this.nodes.forEach((node, at) => {
      const { element, tint, edge, figure, share } = this.boxes[at];
      const part = heat.of(node) / all;
      tint.style.opacity = Math.min(1, part * 1.6).toFixed(3);
      edge.style.opacity = part > 0 ? (0.25 + 0.75 * Math.min(1, part * 2)).toFixed(3) : "0";
      const more = node.rows_out === null || node.rows_out === undefined ? "" : ` · ${count(node.rows_out)} rows`;
      figure.textContent = `${heat.text(node)}${more}`;
      share.textContent = percent(part);
      element.classList.toggle("chosen", this.chosen === node.id);
      element.setAttribute("aria-pressed", String(this.chosen === node.id));
    });
  }
}

/** The name of an operation, and what it is of. */
function split(operation) {
  const found = /^((?:(?:left|right|full|semi|anti|inner|cross|band) )?[a-z-]+(?: rows| changes)?)\s*(.*)$/s.exec(operation);
  return found ? [found[1], found[2].replace(/\s+/g, " ")] : [operation, ""];
}
