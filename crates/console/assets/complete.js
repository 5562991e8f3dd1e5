// Completion of names and keywords in a box with a statement.

import { rows } from "./api.js";
import { el } from "./dom.js";

const KEYWORDS = `SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET DISTINCT AS AND OR NOT IN IS NULL LIKE BETWEEN CASE WHEN THEN ELSE END JOIN LEFT RIGHT FULL INNER
CROSS ON USING UNION ALL EXCEPT INTERSECT WITH VALUES INSERT INTO UPDATE SET DELETE CREATE TABLE MATERIALIZED VIEW INDEX DROP ALTER EXPLAIN ANALYZE STATE COUNT SUM AVG MIN
MAX COALESCE CAST EXTRACT DATE TIMESTAMP INTERVAL OVER PARTITION ROW_NUMBER RANK LAG LEAD FILTER DESC ASC NULLS FIRST LAST CHECKPOINT`.split(/\s+/);
const SYSTEM = `alluvium.relations alluvium.columns alluvium.arrangements alluvium.operators alluvium.epochs alluvium.memory alluvium.tables alluvium.errors alluvium.sources
alluvium.outputs alluvium.sessions alluvium.locks alluvium.compactions alluvium.settings`.split(/\s+/);
const MOST = 10;

/** The names that there are: relations, and columns by the relation that has them. */
export async function names() {
  const [relations, columns] = await Promise.all([
    rows("SELECT name FROM alluvium.relations WHERE kind <> 'index'"),
    rows("SELECT schema, relation, name FROM alluvium.columns"),
  ]);
  return { relations: [...relations.map((row) => row.name), ...SYSTEM], columns };
}

/** What may stand at the end of a text, best first: `[text, kind]`. */
export function suggestions(before, { relations, columns }) {
  const [, of, word] = /(?:([\w$]+)\.)?([\w$."]*)$/.exec(before);
  const [start, plainWord] = [word.toLowerCase(), of ? `${of}.${word}` : word];
  const fits = (text) => text.toLowerCase().startsWith(start) && text.toLowerCase() !== start;
  const found = [];
  const add = (text, kind, length) => found.some(([other]) => other === text) || found.push([text, kind, length]);
  if (of) {
    columns.filter((column) => column.relation === of && fits(column.name)).forEach((column) => add(column.name, `column of ${of}`, word.length));
    relations.filter((name) => name.toLowerCase().startsWith(plainWord.toLowerCase())).forEach((name) => add(name, "relation", plainWord.length));
    return found.slice(0, MOST);
  }
  if (word.length === 0) return [];
  const wantsRelation = /\b(from|join|into|update|view|analyze|state|table)\s+[\w$."]*$/i.test(before);
  const relationsFound = relations.filter(fits).sort();
  if (wantsRelation) relationsFound.forEach((name) => add(name, "relation", word.length));
  columns.filter((column) => fits(column.name)).forEach((column) => add(column.name, `column of ${column.relation}`, word.length));
  relationsFound.forEach((name) => add(name, "relation", word.length));
  KEYWORDS.filter(fits).forEach((name) => add(name, "keyword", word.length));
  return found.slice(0, MOST);
}

/** Offers completions of a box. `place` says where its letter at a line and a column is. */
export function completes(box, place) {
  const list = el("ul", { class: "suggestions", role: "listbox", id: "suggestions", hidden: true });
  let [known, found, at] = [{ relations: SYSTEM, columns: [] }, [], 0];
  const refresh = () => names().then((all) => (known = all)).catch(() => {});
  refresh();
  const close = () => {
    list.hidden = true;
    found = [];
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  };
  const mark = () => {
    [...list.children].forEach((item, number) => item.setAttribute("aria-selected", String(number === at)));
    box.setAttribute("aria-activedescendant", `suggestion-${at}`);
  };
  const accept = (number) => {
    const [text, , length] = found[number];
    const end = box.selectionStart;
    box.setRangeText(text, end - length, end, "end");
    close();
    box.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  };
  const open = () => {
    const before = box.value.slice(0, box.selectionStart);
    found = box.selectionStart === box.selectionEnd ? suggestions(before, known) : [];
    if (found.length === 0) return close();
    at = 0;
    list.replaceChildren(
      ...found.map(([text, kind], number) =>
        el(
          "li",
          {
            role: "option", id: `suggestion-${number}`,
            onmousedown: (event) => {
              event.preventDefault();
              accept(number);
            },
          },
          el("span", null, text), el("small", null, kind),
        ),
      ),
    );
    const lines = before.split("\n");
    const [left, top] = place(lines.length, lines.at(-1).length + 1 - found[0][2]);
    list.style.left = `${left}px`;
    list.style.top = `${top}px`;
    list.hidden = false;
    box.setAttribute("aria-expanded", "true");
    mark();
  };
  box.addEventListener("input", open);
  box.addEventListener("blur", close);
  box.addEventListener("click", close);
  box.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      refresh().then(open);
      return;
    }
    if (list.hidden || event.ctrlKey || event.metaKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      at = (at + step + found.length) % found.length;
      mark();
    } else if (event.key === "Enter" || event.key === "Tab") accept(at);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { list, refresh };
}
