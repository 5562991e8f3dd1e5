// Charts: of the last minutes, and of results.

import { el, setText, svg } from "./dom.js";
import { isNothing, plain } from "./text.js";

const NUMBERS = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|REAL|DECIMAL)/;
const TIMES = /^(TIMESTAMP|DATE)/;
const HEIGHT = 340;
const EDGE = { left: 64, right: 16, top: 12, bottom: 28 };
/** The most bars, and the most lines. */
const [BARS, LINES] = [40, 6];
/** The least seconds of a chart over time. */
const SHORTEST = 30;

/** Whether values of a column are numbers. */
export function isNumeric(column) {
  return NUMBERS.test(column.type) && !column.type.endsWith("[]");
}

/** Numbers for the marks of an axis: 1, 2 or 5 times a power of ten. */
export function marks(least, most, about = 4) {
  if (!(most > least)) return [least];
  const raw = (most - least) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw);
  const found = [];
  for (let at = Math.ceil(least / step) * step; at <= most + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

/** A chart of what was measured in the last minutes, with a line for each name. */
export class TimeChart {
  constructor({ label, names, text, seconds = 180 }) {
    Object.assign(this, { names, text, seconds, points: [] });
    this.lines = names.map((_, at) => svg("path", { class: `line line-${at}` }));
    this.grid = svg("g", { class: "grid" });
    this.values = names.map((name, at) => el("b"));
    this.picture = svg("svg", { viewBox: "0 0 400 110", preserveAspectRatio: "none", "aria-hidden": true }, this.grid, ...this.lines);
    this.top = el("span", { class: "most" });
    this.element = el(
      "figure",
      { class: "time" },
      el("figcaption", null, el("span", null, label), ...names.map((name, at) => el("span", { class: `key key-${at}` }, `${name} `, this.values[at]))),
      el("div", { class: "plot" }, this.picture, this.top),
    );
  }

  /** Adds what was measured now; what is null was not. */
  push(values) {
    const now = performance.now() / 1e3;
    this.points.push([now, values]);
    while (this.points[0][0] < now - this.seconds) this.points.shift();
    const all = this.points.flatMap(([, values]) => values.filter((value) => !isNothing(value)));
    const most = Math.max(0, ...all) * 1.15 || 1;
    // It fills from the right, and is as wide as what there is once that is half a minute.
    const seconds = Math.max(SHORTEST, now - this.points[0][0]);
    setText(this.top, all.length === 0 ? "" : this.text(most));
    this.grid.replaceChildren(...[0, 0.5, 1].map((at) => svg("line", { x1: 0, x2: 400, y1: 1 + at * 108, y2: 1 + at * 108 })));
    this.names.forEach((_, at) => {
      setText(this.values[at], this.text(values[at] ?? this.last(at)));
      let [path, isOpen] = ["", false];
      for (const [time, values] of this.points) {
        if (isNothing(values[at])) {
          isOpen = false;
          continue;
        }
        const [x, y] = [400 * (1 - (now - time) / seconds), 109 - (108 * values[at]) / most];
        path += `${isOpen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
        if (!isOpen) path += `h.01`;
        isOpen = true;
      }
      this.lines[at].setAttribute("d", path);
    });
  }

  last(at) {
    for (let number = this.points.length - 1; number >= 0; number--) {
      const value = this.points[number][1][at];
      if (!isNothing(value)) return value;
    }
    return null;
  }
}

/** A result as one large number: the first numeric value of its first row. */
export function numberChart({ columns, rows }) {
  const column = columns.find(isNumeric) ?? columns[0];
  const value = rows.length > 0 && column ? rows[0][column.name] : null;
  const text = isNumeric(column ?? { type: "" }) && !isNothing(value) ? grouped(plain(value)) : plain(value);
  return el("figure", { class: "large" }, el("b", null, text), el("figcaption", null, column?.name ?? ""));
}

/** Groups the digits of a number without reading it: it may be larger than a script can hold. */
function grouped(text) {
  const [whole, rest] = text.split(/(?=[.eE])/, 2);
  return /^-?\d+$/.test(whole) ? whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ?? "") : text;
}

/** The values of a column as places on an axis: numbers, times, or one after the other. */
function places(column, rows) {
  const isTime = TIMES.test(column.type);
  if (isNumeric(column) || isTime) {
    const values = rows.map((row) => (isNothing(row[column.name]) ? NaN : isTime ? Date.parse(row[column.name]) : Number(row[column.name])));
    return { values, text: (value) => (isTime ? new Date(value).toISOString().slice(0, 16).replace("T", " ") : short(value)), marks: true };
  }
  const texts = rows.map((row) => plain(row[column.name]));
  return { values: texts.map((_, at) => at), text: (value) => texts[value] ?? "", marks: false };
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(3)}G`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return String(+value.toPrecision(6));
}

function unfit(text) {
  return el("p", { class: "empty" }, text);
}

/** A result as lines, so many pixels wide: over its first column, one for each other column of numbers. */
export function lineChart({ columns, rows }, width) {
  const over = columns.find((column) => TIMES.test(column.type)) ?? columns[0];
  const drawn = columns.filter((column) => column !== over && isNumeric(column)).slice(0, LINES);
  if (drawn.length === 0 || rows.length === 0) return unfit("Lines need a column to be drawn over, and another one of numbers.");
  const axis = places(over, rows);
  const order = rows.map((_, at) => at).filter((at) => !Number.isNaN(axis.values[at]));
  order.sort((a, b) => axis.values[a] - axis.values[b]);
  const all = drawn.flatMap((column) => rows.map((row) => row[column.name]).filter((value) => !isNothing(value)).map(Number));
  const [least, most] = [Math.min(0, ...all), Math.max(...all, 1e-9)];
  const [first, last] = [axis.values[order[0]], axis.values[order.at(-1)]];
  const x = (value) => EDGE.left + ((width - EDGE.left - EDGE.right) * (value - first)) / (last - first || 1);
  const y = (value) => EDGE.top + (HEIGHT - EDGE.top - EDGE.bottom) * (1 - (value - least) / (most - least));
  const bottom = axis.marks ? marks(first, last, 5) : [order[0], order[Math.floor(order.length / 2)], order.at(-1)];
  const timed = TIMES.test(over.type) ? [first, (first + last) / 2, last] : bottom;
  const lines = drawn.map((column, at) => {
    const points = order.filter((row) => !isNothing(rows[row][column.name]));
    const path = points.map((row, number) => `${number ? "L" : "M"}${x(axis.values[row]).toFixed(1)} ${y(Number(rows[row][column.name])).toFixed(1)}`);
    return svg("path", { class: `line line-${at}`, d: path.join("") }, svg("title", null, column.name));
  });
  return el(
    "figure",
    { class: "result" },
    legend(drawn),
    svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `${drawn.map((one) => one.name).join(", ")} over ${over.name}` }, grid(marks(least, most), y, width), ...labels([...new Set(timed)], x, axis.text), ...lines),
  );
}

/** A result as bars, so many pixels wide: one for each row, named by its first column that is no number. */
export function barChart({ columns, rows }, width) {
  const named = columns.find((column) => !isNumeric(column)) ?? columns[0];
  const drawn = columns.find((column) => column !== named && isNumeric(column));
  if (!drawn || rows.length === 0) return unfit("Bars need a column with names, and another one of numbers.");
  const some = rows.slice(0, BARS);
  const values = some.map((row) => Number(row[drawn.name] ?? 0));
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values) || 1];
  const high = 24;
  const [left, right] = [Math.min(200, width * 0.36), Math.min(90, width * 0.2)];
  const letters = Math.floor((left - 10) / 7);
  const x = (value) => left + ((width - left - right) * (value - least)) / (most - least);
  const bars = some.map((row, at) => {
    const [name, from, to] = [plain(row[named.name]), Math.min(x(0), x(values[at])), Math.max(x(0), x(values[at]))];
    const middle = at * high + high / 2 + 4;
    return svg(
      "g",
      { class: "bar" },
      svg("title", null, `${name}: ${plain(row[drawn.name])}`),
      svg("text", { x: left - 10, y: middle, "text-anchor": "end" }, name.length > letters ? `${name.slice(0, letters - 1)}…` : name),
      svg("rect", { x: from, y: at * high + 3, width: Math.max(1, to - from), height: high - 6, rx: 2 }),
      svg("text", { x: to + 8, y: middle, class: "value" }, short(values[at])),
    );
  });
  const rest = rows.length > BARS ? `The first ${BARS} of ${rows.length} rows` : "";
  return el(
    "figure",
    { class: "result" },
    el("figcaption", null, el("span", null, `${drawn.name} by ${named.name}`), el("span", null, rest)),
    svg("svg", { width, height: some.length * high + 4, viewBox: `0 0 ${width} ${some.length * high + 4}`, role: "img", "aria-label": `${drawn.name} by ${named.name}` }, ...bars),
  );
}

function legend(columns) {
  return el("figcaption", null, ...columns.map((column, at) => el("span", { class: `key key-${at}` }, column.name)));
}

function grid(values, y, width) {
  const parts = values.flatMap((value) => [
    svg("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }),
    svg("text", { x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }, short(value)),
  ]);
  return svg("g", { class: "grid" }, ...parts);
}

function labels(values, x, text) {
  return values.map((value, at) => {
    const anchor = values.length > 1 && at === 0 ? "start" : values.length > 1 && at === values.length - 1 ? "end" : "middle";
    return svg("text", { class: "label", x: x(value), y: HEIGHT - 8, "text-anchor": anchor }, text(value));
  });
}
