// A table that sorts by a column, and has elements for the rows alone that are seen.

import { el, setText } from "./dom.js";
import { isNothing } from "./text.js";

const HEIGHT = 32;
/** Rows above and below those that are seen. */
const AROUND = 8;

/** Orders values as people expect: numbers by size, texts by letters, what is not there at the end. */
export function compare(a, b) {
  if (isNothing(a) || isNothing(b)) return isNothing(a) - isNothing(b);
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [x, y] = [String(a), String(b)];
  return x < y ? -1 : x > y ? 1 : 0;
}

/**
 * A column has an `id`, a `label`, the `text` of a row, and may have its `value` by which rows are ordered, `isNumber`, a `width` in letters,
 * an `href`, a `title`, a `tone` (a class of the cell) and a `share` between 0 and 1, drawn behind the text.
 */
export class Table {
  /** `sort` is a column's name, with a minus before it for the largest first; `sorted` is called with it when it changes. */
  constructor({ columns, label, sort, sorted, empty }) {
    this.columns = columns;
    this.sorted = sorted ?? (() => {});
    this.all = [];
    this.shown = [];
    this.pool = [];
    this.orderBy(sort ?? null);
    const widths = columns.map((column) => el("col"));
    columns.forEach((column, at) => (widths[at].style.width = `${column.width ?? 14}ch`));
    this.buttons = columns.map((column) =>
      el("button", { type: "button", onclick: () => this.press(column) }, column.label),
    );
    const heads = columns.map((column, at) =>
      el("th", { scope: "col", class: column.isNumber ? "number" : null }, this.buttons[at]),
    );
    this.heads = heads;
    [this.above, this.below] = [el("tr", { class: "gap", "aria-hidden": true }), el("tr", { class: "gap", "aria-hidden": true })];
    this.body = el("tbody", null, this.above, this.below);
    this.table = el("table", { "aria-label": label }, el("colgroup", null, ...widths), el("thead", null, el("tr", null, ...heads)), this.body);
    this.table.style.minWidth = `${columns.reduce((sum, column) => sum + (column.width ?? 14), 0)}ch`;
    this.empty = el("p", { class: "empty", hidden: true }, empty ?? "There are no rows.");
    this.scroller = el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": label }, this.table);
    this.element = el("div", { class: "table" }, this.scroller, this.empty);
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    this.markHeads();
  }

  /** The column of a row that is sorted by. */
  orderBy(sort) {
    this.isDown = sort?.startsWith("-") ?? false;
    this.by = this.columns.find((column) => column.id === sort?.replace(/^-/, "")) ?? null;
  }

  press(column) {
    const isDown = this.by === column ? !this.isDown : Boolean(column.isNumber);
    const sort = `${isDown ? "-" : ""}${column.id}`;
    this.orderBy(sort);
    this.markHeads();
    this.order();
    this.sorted(sort);
  }

  markHeads() {
    this.heads.forEach((head, at) => {
      const isBy = this.by === this.columns[at];
      head.setAttribute("aria-sort", !isBy ? "none" : this.isDown ? "descending" : "ascending");
    });
  }

  /** Shows these rows. */
  set rows(rows) {
    this.all = rows;
    this.order();
  }

  order() {
    this.shown = this.all;
    if (this.by !== null) {
      const value = this.by.value ?? this.by.text;
      const [first, second] = this.isDown ? [-1, 1] : [1, 1];
      const keyed = this.all.map((row) => [value(row), row]);
      keyed.sort(([a], [b]) => (isNothing(a) || isNothing(b) ? second : first) * compare(a, b));
      this.shown = keyed.map(([, row]) => row);
    }
    this.table.setAttribute("aria-rowcount", this.shown.length + 1);
    this.empty.hidden = this.shown.length > 0;
    this.draw();
  }

  draw() {
    const seen = Math.max(this.scroller.clientHeight, HEIGHT * 4);
    const from = Math.max(0, Math.min(Math.floor(this.scroller.scrollTop / HEIGHT) - AROUND, this.shown.length - 1));
    const until = Math.min(this.shown.length, from + Math.ceil(seen / HEIGHT) + 2 * AROUND);
    while (this.pool.length < until - from) this.add();
    while (this.pool.length > until - from) this.pool.pop().line.remove();
    this.above.style.height = `${from * HEIGHT}px`;
    this.below.style.height = `${(this.shown.length - until) * HEIGHT}px`;
    // Other elements of a row keep their places, and the focus with them.
    this.pool.forEach((line, at) => this.fill(line, this.shown[from + at], from + at));
    if (this.scroller.clientHeight > seen) requestAnimationFrame(() => this.draw());
  }

  add() {
    const line = { line: el("tr"), cells: [] };
    for (const column of this.columns) {
      const inner = column.href ? el("a") : el("span");
      const cell = el("td", null, inner);
      line.cells.push({ cell, inner });
      line.line.append(cell);
    }
    this.body.insertBefore(line.line, this.below);
    this.pool.push(line);
  }

  fill(line, row, number) {
    line.line.setAttribute("aria-rowindex", number + 2);
    this.columns.forEach((column, at) => {
      const { cell, inner } = line.cells[at];
      const text = column.text(row);
      setText(inner, text);
      const href = column.href?.(row) ?? null;
      if (href !== null && inner.getAttribute("href") !== href) inner.setAttribute("href", href);
      const name = [column.isNumber ? "number" : "", column.tone?.(row) ?? ""].join(" ").trim();
      if (cell.className !== name) cell.className = name;
      const title = column.title?.(row) ?? (text.length > (column.width ?? 14) - 2 ? text : "");
      if (cell.title !== title) cell.title = title;
      if (column.share) cell.style.setProperty("--share", `${Math.min(1, column.share(row) || 0) * 100}%`);
      cell.classList.toggle("share", Boolean(column.share));
    });
  }
}
