// A box for statements. The address keeps the statement, and how its result is shown.

import { Lost, result, rows } from "./api.js";
import { barChart, lineChart, numberChart } from "./chart.js";
import { completes } from "./complete.js";
import { choice, el, problemBox, setText } from "./dom.js";
import { follow, MOST_FOLLOWED } from "./live.js";
import { columnsOf } from "./results.js";
import { Table } from "./table.js";
import { count, nanoseconds, things } from "./text.js";

const CHARTS = { number: numberChart, line: lineChart, bar: barChart };
const NAME = String.raw`(?:"(?:[^"]|"")+"|[\w$]+)`;
const OF_A_VIEW = new RegExp(String.raw`^\s*SELECT\s+(\*|${NAME}(?:\s*,\s*${NAME})*)\s+FROM\s+(${NAME}(?:\.${NAME})?)\s*;?\s*$`, "i");
const COLUMNS = "SELECT name, type FROM alluvium.columns WHERE schema = $1 AND relation = $2 ORDER BY position";
const RELATION = "SELECT name, kind, rows FROM alluvium.relations WHERE schema = $1 AND relation = $2";

function unquoted(name) {
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase();
}

/** The relation that a statement shows and can be followed by, with its columns; null if it is another statement. */
async function followed(text) {
  const found = OF_A_VIEW.exec(text);
  if (!found) return null;
  const parts = found[2].match(new RegExp(NAME, "g")).map(unquoted);
  const [schema, relation] = parts.length === 2 ? parts : ["public", parts[0]];
  if (schema === "alluvium") return null;
  const [about] = await rows(RELATION, [schema, relation]);
  if (!about || about.rows === null || about.rows > MOST_FOLLOWED) return null;
  const all = await rows(COLUMNS, [schema, relation]);
  if (found[1] === "*") return { name: about.name, columns: all };
  const wanted = found[1].match(new RegExp(NAME, "g")).map(unquoted);
  const columns = wanted.map((name) => all.find((column) => column.name === name));
  return columns.every(Boolean) ? { name: about.name, columns } : null;
}

/** Shows the page. */
export function sql(main, { parameters, keep }) {
  document.title = "SQL – Alluvium";
  const kept = { q: parameters.get("q") ?? "", as: parameters.get("as") ?? "table", live: parameters.get("live") ?? "" };
  const box = el("textarea", {
    id: "statement", "aria-label": "Statement", wrap: "off", spellcheck: "false", autocapitalize: "off", rows: "6", role: "combobox",
    "aria-autocomplete": "list", "aria-controls": "suggestions", "aria-expanded": "false", placeholder: "SELECT …",
  });
  box.value = kept.q;
  const caret = el("div", { class: "caret", hidden: true, "aria-hidden": true });
  const editor = el("div", { class: "editor" }, box, caret);
  const place = (line, column) => {
    const style = getComputedStyle(box);
    const [high, letter] = [parseFloat(style.lineHeight), width(box)];
    return [
      box.offsetLeft + parseFloat(style.paddingLeft) + 1 + (column - 1) * letter - box.scrollLeft,
      box.offsetTop + parseFloat(style.paddingTop) + 1 + line * high - box.scrollTop,
    ];
  };
  const { list, refresh } = completes(box, place);
  editor.append(list);
  const run = el("button", { type: "button", class: "first", title: "Ctrl-Enter" }, "Run");
  const isLive = el("input", { type: "checkbox", id: "live" });
  isLive.checked = kept.live !== "off";
  const [note, out, problem] = [el("span", { class: "many", role: "status" }), el("div", { class: "out" }), el("div")];
  const forms = choice("Show as", [["table", "Table"], ["number", "Number"], ["line", "Line"], ["bar", "Bar"]], kept.as, (as) => {
    keep(Object.assign(kept, { as }));
    draw();
  });
  main.append(
    el("h1", { class: "unseen" }, "SQL"),
    editor,
    el("div", { class: "bar-of-table" }, run, el("label", { for: "live", title: "SELECT of columns of one table or view, without conditions, follows its changes" }, isLive, " Live"), note, forms),
    problem,
    out,
  );

  let [shown, table, end, stop] = [null, null, () => {}, null];
  const draw = () => {
    if (shown === null) return;
    if (kept.as !== "table") {
      table = null;
      return out.replaceChildren(CHARTS[kept.as](shown, Math.max(320, out.clientWidth - 44)));
    }
    const shape = JSON.stringify(shown.columns);
    if (table?.shape !== shape) {
      table = new Table({ columns: columnsOf(shown.columns), label: "Result", empty: "The result has no rows." });
      table.shape = shape;
      out.replaceChildren(table.element);
    }
    table.rows = shown.rows;
  };
  const show = (next) => {
    shown = next;
    draw();
  };
  const fail = (error) => {
    problem.replaceChildren(problemBox(error));
    if (error.hint) problem.firstChild.append(el("small", null, ` ${error.hint}`));
    if (!error.position) return;
    const [left, top] = place(error.position.line, error.position.column);
    caret.style.left = `${left}px`;
    caret.style.top = `${top}px`;
    caret.dataset.place = `${error.position.line}:${error.position.column}`;
    caret.hidden = false;
  };
  const clear = () => {
    end();
    end = () => {};
    stop?.abort();
    caret.hidden = true;
    problem.replaceChildren();
    setText(note, "");
  };
  const start = async () => {
    clear();
    const text = box.value;
    keep(Object.assign(kept, { q: text, live: isLive.checked ? "" : "off" }));
    if (text.trim() === "") return;
    const mine = (stop = new AbortController());
    const began = performance.now();
    setText(note, "running …");
    run.textContent = "Cancel";
    try {
      const relation = isLive.checked ? await followed(text) : null;
      if (mine.signal.aborted) return;
      if (relation !== null) {
        shown = null;
        out.replaceChildren();
        end = follow(
          relation.name,
          (all, epoch) => {
            setText(note, `live: a subscription to ${relation.name}, ${things(all.length, "row")} as of epoch ${count(epoch)}`);
            show({ columns: relation.columns, rows: all });
          },
          fail,
        );
        return;
      }
      const answer = await result(text, mine.signal);
      const time = nanoseconds((performance.now() - began) * 1e6);
      if (answer.columns) {
        show(answer);
        const parts = [`${answer.isCut ? "the first " : ""}${things(answer.rows.length, "row")}`, time];
        setText(note, parts.join(" · "));
      } else {
        shown = null;
        out.replaceChildren();
        setText(note, [answer.command, typeof answer.rows === "number" ? things(answer.rows, "row") : null, time].filter(Boolean).join(" · "));
        refresh();
      }
    } catch (error) {
      setText(note, error.name === "AbortError" ? "cancelled" : error instanceof Lost ? "not run" : "");
      if (error.name !== "AbortError") {
        shown = null;
        out.replaceChildren();
        fail(error);
      }
    } finally {
      if (stop === mine) stop = null;
      run.textContent = "Run";
    }
  };
  run.addEventListener("click", () => (stop ? stop.abort() : start()));
  isLive.addEventListener("change", start);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    start();
  });
  box.addEventListener("input", () => {
    caret.hidden = true;
    keep(Object.assign(kept, { q: box.value }));
  });
  box.addEventListener("scroll", () => (caret.hidden = true));
  if (kept.q && reads(kept.q)) start();
  else if (kept.q) setText(note, "Run it by the button or Ctrl-Enter");
  box.focus();
  return clear;
}

/** Whether a statement of an address is run at once: one that only reads. */
function reads(text) {
  return /^\s*(SELECT|WITH|VALUES|EXPLAIN|SHOW)\b/i.test(text) && !/;\s*\S/.test(text);
}

/** The width of a letter of a box. */
function width(box) {
  const style = getComputedStyle(box);
  const context = (width.context ??= document.createElement("canvas").getContext("2d"));
  context.font = `${style.fontSize} ${style.fontFamily}`;
  return context.measureText("m").width;
}
