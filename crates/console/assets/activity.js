// Relations of the system as tables: sources and outputs, memory and merges, sessions, locks.

import { poll, result } from "./api.js";
import { isNumeric } from "./chart.js";
import { el, problemBox, setText } from "./dom.js";
import { Table } from "./table.js";
import { ago, byName, count, isNothing, NOTHING, plain } from "./text.js";

/** The rows by which the widths of columns are chosen, and the most letters of a column. */
const [SAMPLE, LONGEST] = [100, 36];
/** What the unit at the end of a column's name says of the column, where its name without that is another one's as well. */
const SUBJECTS = { _bytes: " bytes", _ns: " time", _us: " time", _ms: " time" };
/** Numbers that are names. */
const IDS = /^(session|client|transaction|worker|operator|id|number)$/;
const TONES = { running: "good", active: "good", waiting: "busy", "idle in transaction": "busy", failed: "bad" };

/** What is special about columns of some names: their text, tone and link, all of a row. */
const SPECIAL = {
  error: { tone: (row) => (row.error ? "bad" : "") },
  granted: { tone: (row) => (row.granted ? "" : "warn") },
  // It begins with the path, which stands beside it.
  position: { text: ({ position, path }) => (position.startsWith(path) ? position.slice(path.length).replace(/^:/, "") : position) },
  relation: { href: (row) => `#/view/${encodeURIComponent(row.relation)}` },
  state: { tone: (row) => `state ${TONES[row.state] ?? ""}` },
};

/** The columns of a relation of the system, with units by their names. Those in which nothing is are left out. */
function columnsFor({ columns, rows }, shares) {
  const labels = columns.map(({ name }) => name.replace(/_(bytes|ns|us|ms)$/, ""));
  const isOne = (label) => labels.filter((other) => other === label).length === 1;
  const shown = columns.map(({ name, type }, at) => {
    const isNumber = isNumeric({ type });
    const isTime = type.startsWith("TIMESTAMP");
    const unit = IDS.test(name) ? plain : isTime ? ago : (byName(name) ?? (isNumber ? count : plain));
    const special = SPECIAL[name] ?? {};
    const text = (row) => (isNothing(row[name]) ? NOTHING : special.text ? special.text(row) : unit(row[name]));
    const label = (isOne(labels[at]) ? labels[at] : labels[at] + (SUBJECTS[name.slice(labels[at].length)] ?? "")).replaceAll("_", " ");
    const letters = Math.max(label.length, isTime ? 9 : 4, ...rows.slice(0, SAMPLE).map((row) => text(row).length));
    const of = shares?.[name];
    return {
      title: isTime ? (row) => plain(row[name]) : undefined, ...special,
      id: name, isNumber: isNumber && !IDS.test(name), label, text,
      width: Math.min(letters, LONGEST) + 4,
      value: (row) => (isNumber && !isNothing(row[name]) ? Number(row[name]) : row[name]),
      share: of && ((row) => row[name] / of(row)),
    };
  });
  return shown.filter(({ id }) => rows.length === 0 || rows.some((row) => !isNothing(row[id])));
}

/** A section for a relation of the system, read again each second. */
function section(main, relation, title, { parameters, keep, kept, empty, first, shares, order = "*" }) {
  const [many, place] = [el("span", { class: "many" }), el("div")];
  main.append(el("section", null, el("div", { class: "bar-of-table" }, el("h2", null, title), many), place));
  let [table, names] = [null, ""];
  const sort = `${relation}-sort`;
  kept[sort] = parameters.get(sort) ?? first;
  return poll(
    1_000,
    async () => {
      const found = await result(`SELECT ${order} FROM alluvium.${relation}`);
      const columns = columnsFor(found, shares);
      const shape = JSON.stringify(columns.map((column) => column.id));
      if (shape !== names) {
        names = shape;
        table = new Table({
          columns, label: title, empty, sort: kept[sort],
          sorted: (by) => keep(Object.assign(kept, { [sort]: by })),
        });
        place.replaceChildren(table.element);
      }
      setText(many, count(found.rows.length));
      table.rows = found.rows;
    },
    (error) => {
      [table, names] = [null, ""];
      place.replaceChildren(error.sqlstate === "42P01" ? el("p", { class: "empty" }, `This server has no relation alluvium.${relation}.`) : problemBox(error));
    },
  );
}

function page(main, title, sections, { parameters, keep }) {
  document.title = `${title} – Alluvium`;
  main.append(el("h1", { class: sections.length === 1 ? "unseen" : null }, title));
  const kept = {};
  const ends = sections.map(([relation, title, more]) => section(main, relation, title, { parameters, keep, kept, ...more }));
  return () => ends.forEach((end) => end());
}

/** Where rows come from, and where they go. */
export function connectors(main, address) {
  return page(main, "Sources and outputs", [
    ["sources", "Sources", { empty: "No table reads from a source." }],
    ["outputs", "Outputs", { empty: "No view is written to an output." }],
  ], address);
}

/** What memory and files are used for, and what is merged. */
export function state(main, address) {
  return page(main, "State", [
    ["memory", "Memory and files", { order: "kind, bytes, budget, view", first: "-bytes", shares: { bytes: (row) => row.budget || NaN } }],
    ["compactions", "Merges and moves to files", { empty: "Nothing of 64 KiB or more was merged.", first: "age_ms", shares: { done_bytes: (row) => row.bytes } }],
  ], address);
}

/** Who is connected. */
export function sessions(main, address) {
  return page(main, "Sessions", [["sessions", "Sessions", { empty: "No session is open." }]], address);
}

/** What waits for what. */
export function locks(main, address) {
  return page(main, "Locks", [["locks", "Locks", { empty: "No lock is held." }]], address);
}
