// What runs, and how it is.

import { poll, rows } from "./api.js";
import { TimeChart } from "./chart.js";
import { el, problemBox, setText } from "./dom.js";
import { Table } from "./table.js";
import { bytes, count, isNothing, microseconds, nanoseconds, NOTHING, percent, rate, things } from "./text.js";

const RELATIONS = "SELECT name, kind, state, reason, rows, filled FROM alluvium.relations WHERE kind <> 'index'";
const EPOCHS = "SELECT relation, committed, durable, complete, durable_delays, complete_delays FROM alluvium.epochs";
const MEMORY = "SELECT kind, bytes, budget FROM alluvium.memory WHERE view IS NULL";
const STATE = "SELECT view, SUM(memory_bytes) AS memory, SUM(disk_bytes) AS disk, SUM(debt_bytes) AS debt FROM alluvium.arrangements GROUP BY view";
const ERRORS = "SELECT view, COUNT(*) AS errors FROM alluvium.errors GROUP BY view";
/** The time of each view, and the changes that its last operator has given which keeps and sends none. */
const WORK = `SELECT view, SUM(busy) AS busy, SUM(rows) FILTER (WHERE place = 1) AS changes FROM (
  SELECT view, SUM(minute_busy_ns) AS busy, SUM(rows_out) AS rows,
    ROW_NUMBER() OVER (PARTITION BY view ORDER BY CASE WHEN name IN ('keep rows', 'send changes') THEN 1 ELSE 0 END, operator DESC) AS place
  FROM alluvium.operators WHERE view IS NOT NULL GROUP BY view, operator, name) AS operators
GROUP BY view`;
const CONNECTORS = ["sources", "outputs"].map((name) => `SELECT COUNT(*) AS many FROM alluvium.${name}`);

/** The rows of a statement, or none if there is no such relation, or no right to it. */
async function some(text) {
  try {
    return await rows(text);
  } catch (error) {
    if (error.status >= 400 && error.status < 500) return [];
    throw error;
  }
}

function stateOf(row) {
  if (row.state === "filling") return isNothing(row.filled) ? "filling" : `filling, ${percent(row.filled)}`;
  return row.state;
}

const TONES = { running: "good", filling: "busy", failed: "bad", declared: "busy" };

function columns(most) {
  const number = (id, label, text, width = 10) => ({ id, label, isNumber: true, width, value: (row) => row[id], text: (row) => text(row[id]) });
  return [
    { id: "name", label: "Name", width: 25, text: (row) => row.name, href: (row) => `#/view/${encodeURIComponent(row.name)}` },
    { id: "kind", label: "Kind", width: 18, text: (row) => row.kind },
    { id: "state", label: "State", width: 11, text: stateOf, tone: (row) => `state ${TONES[row.state] ?? ""}`, title: (row) => row.reason ?? "" },
    number("rows", "Rows", count, 9),
    number("rate", "Changes", rate, 9),
    { ...number("behind", "Behind", (value) => (value === 0 ? "0" : isNothing(value) ? NOTHING : things(value, "epoch")), 10), tone: (row) => (row.behind > 100 ? "warn" : "") },
    { ...number("busy", "Busy a minute", nanoseconds, 14), share: (row) => row.busy / most.busy },
    { ...number("memory", "Memory", bytes), share: (row) => row.memory / most.memory },
    number("disk", "Files", bytes, 9),
    number("debt", "Merge debt", bytes, 13),
    { ...number("errors", "Errors", (value) => (value ? count(value) : "0"), 8), tone: (row) => (row.errors ? "bad" : "") },
  ];
}

/** A figure with its name, and a bar against its bound. */
function figure(label) {
  const [value, note, bar] = [el("dd"), el("small"), el("span", { class: "bar", hidden: true })];
  const element = el("div", { class: "figure" }, el("dt", null, label), value, note, bar);
  const set = (text, more = "", share = null, tone = "") => {
    setText(value, text);
    setText(note, more);
    element.dataset.tone = tone;
    bar.hidden = share === null;
    if (share !== null) bar.style.setProperty("--share", `${Math.min(100, share * 100)}%`);
  };
  return { element, set };
}

/** The delay below which a share of the epochs was that came between two histograms; null if there were none. */
export function delay(before, after, share) {
  const counts = after.map((many, at) => many - (before[at] ?? 0));
  const all = counts.reduce((sum, many) => sum + many, 0);
  if (all <= 0) return null;
  let rest = Math.ceil(all * share);
  for (let at = 0; at < counts.length; at++) {
    rest -= counts[at];
    if (rest <= 0) return 2 ** at;
  }
  return null;
}

/** Shows the page. */
export function overview(main, { parameters, keep }) {
  document.title = "Overview – Alluvium";
  const kept = { sort: parameters.get("sort") ?? "name", filter: parameters.get("filter") ?? "", kind: parameters.get("kind") ?? "" };
  const figures = {
    running: figure("Running"), epoch: figure("Epochs"), delay: figure("Until complete"), memory: figure("Memory"),
    files: figure("State in files"), debt: figure("Merge debt"), errors: figure("Errors"),
  };
  const latency = new TimeChart({ label: "Commit until complete", names: ["p50", "p99"], text: microseconds });
  const epochs = new TimeChart({ label: "Epochs", names: ["committed"], text: rate });
  const most = { busy: 1, memory: 1 };
  const table = new Table({
    columns: columns(most), label: "Tables and views", sort: kept.sort, empty: "No table or view has this name.",
    sorted: (sort) => keep(Object.assign(kept, { sort })),
  });
  const filter = el("input", { type: "search", id: "filter", placeholder: "Filter by name", "aria-label": "Filter by name", spellcheck: "false" });
  filter.value = kept.filter;
  const kinds = el("select", { "aria-label": "Kind" }, ...[["", "all kinds"], ["table", "tables"], ["view", "views"]].map(([value, text]) => el("option", { value }, text)));
  kinds.value = kept.kind;
  const many = el("span", { class: "many" });
  const problems = el("div");
  main.append(
    el("h1", { class: "unseen" }, "Overview"),
    el("dl", { class: "figures" }, ...Object.values(figures).map((one) => one.element)),
    el("div", { class: "charts" }, latency.element, epochs.element),
    el("div", { class: "bar-of-table" }, el("h2", null, "Tables and views"), many, filter, kinds),
    problems,
    table.element,
  );

  let all = [];
  const shown = () => {
    const text = kept.filter.toLowerCase();
    const found = all.filter((row) => row.name.toLowerCase().includes(text) && row.kind.endsWith(kept.kind));
    setText(many, found.length === all.length ? count(all.length) : `${count(found.length)} of ${count(all.length)}`);
    table.rows = found;
  };
  filter.addEventListener("input", () => {
    keep(Object.assign(kept, { filter: filter.value }));
    shown();
  });
  kinds.addEventListener("change", () => {
    keep(Object.assign(kept, { kind: kinds.value }));
    shown();
  });
  const failed = (error) => problems.replaceChildren(problemBox(error));

  let [completes, engine] = [new Map(), null];
  let earlier = null;
  const watch = poll(
    1_000,
    async () => {
      const now = performance.now();
      const found = await some(EPOCHS);
      completes = new Map(found.map((row) => [row.relation, row.complete]));
      const next = found.find((row) => row.relation === null) ?? null;
      if (engine !== null && next !== null) {
        const seconds = (now - earlier) / 1e3;
        const delays = [0.5, 0.99].map((share) => delay(engine.complete_delays, next.complete_delays, share));
        latency.push(delays);
        const many = (next.committed - engine.committed) / seconds;
        epochs.push([many]);
        figures.epoch.set(count(next.committed), rate(many));
        const behind = next.committed - next.complete;
        const of = [0.5, 0.99].map((share) => delay([], next.complete_delays, share));
        figures.delay.set(microseconds(of[1]), `p99 since the start · ${behind === 0 ? "nothing waits" : `${things(behind, "epoch")} ${behind === 1 ? "waits" : "wait"}`}`);
      }
      [engine, earlier] = [next, now];
      problems.replaceChildren();
    },
    failed,
  );

  let changes = null;
  const look = poll(
    2_000,
    async () => {
      const now = performance.now();
      const [relations, memory, state, work, errors, ...connectors] = await Promise.all([RELATIONS, MEMORY, STATE, WORK, ERRORS, ...CONNECTORS].map(some));
      const by = (rows) => new Map(rows.map((row) => [row.view, row]));
      const [states, works, wrongs] = [by(state), by(work), by(errors)];
      all = relations.map((relation) => {
        const [kept, done] = [states.get(relation.name), works.get(relation.name)];
        const before = changes?.of.get(relation.name);
        const committed = engine?.committed ?? null;
        const complete = completes.get(relation.name);
        return {
          ...relation,
          rate: done && !isNothing(before) ? Math.max(0, done.changes - before) / ((now - changes.at) / 1e3) : null,
          behind: isNothing(complete) || committed === null ? null : Math.max(0, committed - complete),
          busy: done?.busy ?? null, memory: kept?.memory ?? null, disk: kept?.disk ?? null, debt: kept?.debt ?? null,
          errors: wrongs.get(relation.name)?.errors ?? 0,
        };
      });
      changes = { at: now, of: new Map(work.map((row) => [row.view, row.changes])) };
      most.busy = Math.max(1, ...all.map((row) => row.busy ?? 0));
      most.memory = Math.max(1, ...all.map((row) => row.memory ?? 0));
      shown();
      summarize(figures, { relations, memory, state, errors, connectors });
      problems.replaceChildren();
    },
    failed,
  );
  return () => {
    watch();
    look();
  };
}

function summarize(figures, { relations, memory, state, errors, connectors }) {
  const ofKind = (kind) => relations.filter((row) => row.kind.endsWith(kind)).length;
  const failed = relations.filter((row) => row.state === "failed").length;
  const filling = relations.filter((row) => row.state === "filling").length;
  const [sources, outputs] = connectors.map((found) => found[0]?.many ?? null);
  const parts = [things(ofKind("table"), "table")];
  if (sources) parts.push(things(sources, "source"));
  if (outputs) parts.push(things(outputs, "output"));
  if (filling) parts.push(`${count(filling)} filling`);
  if (failed) parts.push(`${count(failed)} failed`);
  figures.running.set(things(ofKind("view"), "view"), parts.join(" · "), null, failed ? "bad" : "");
  const kinds = new Map(memory.map((row) => [row.kind, row]));
  const counted = kinds.get("counted");
  const budget = counted?.budget ?? null;
  figures.memory.set(bytes(counted?.bytes), budget === null ? "no budget" : `of ${bytes(budget)}`, counted && budget ? counted.bytes / budget : null);
  const sum = (name) => state.reduce((sum, row) => sum + (row[name] ?? 0), 0);
  figures.files.set(bytes(sum("disk")), `${bytes(kinds.get("mapped")?.bytes)} resident`);
  figures.debt.set(bytes(sum("debt")), sum("debt") === 0 ? "nothing to merge" : "left to merge");
  const wrong = errors.reduce((sum, row) => sum + row.errors, 0);
  const places = errors.filter((row) => row.errors > 0).length;
  figures.errors.set(count(wrong), wrong === 0 ? "no row has failed" : `in ${things(places, "view")}`, null, wrong ? "bad" : "");
}
