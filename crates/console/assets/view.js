// A table or a view: its operators, what it keeps and why, and its rows.

import { poll, rows } from "./api.js";
import { choice, el, problemBox, setText } from "./dom.js";
import { analyzed, kept as keptStates } from "./explain.js";
import { Graph } from "./graph.js";
import { follow, MOST_FOLLOWED } from "./live.js";
import { Table } from "./table.js";
import { bytes, count, isNothing, nanoseconds, percent, plain, quoted, things } from "./text.js";
import { columnsOf } from "./results.js";

const ABOUT = "SELECT name, kind, state, reason, rows, filled, comment, schema, relation, definition FROM alluvium.relations WHERE name = $1";
const COLUMNS = "SELECT name, type FROM alluvium.columns WHERE schema = $1 AND relation = $2 ORDER BY position";
const FAILURES = "SELECT expression, message, row FROM alluvium.errors WHERE view = $1 LIMIT 20";
/** The most rows of a relation that is too large to be followed. */
const FIRST = 1_000;

/** Shows the page. */
export function view(main, { of, parameters, keep }) {
  document.title = `${of} – Alluvium`;
  const kept = { heat: parameters.get("heat") ?? "time", sort: parameters.get("sort") ?? null };
  const [kind, state, figures] = [el("span", { class: "kind" }), el("span", { class: "state" }), el("span", { class: "many" })];
  const [problems, plans, errors, live] = [el("div"), el("section", { class: "plans", hidden: true }), el("div"), el("section", { class: "rows" })];
  const definition = el("pre");
  main.append(
    el("div", { class: "title" }, el("h1", null, of), kind, state, figures),
    problems,
    errors,
    plans,
    live,
    el("details", { class: "definition" }, el("summary", null, "Definition"), definition),
  );
  const ends = [];
  const failed = (error) => problems.replaceChildren(problemBox(error));
  let isBegun = false;
  ends.push(
    poll(
      2_000,
      async () => {
        const [about] = await rows(ABOUT, [of]);
        if (!about) throw new Error(`There is no table or view named ${of}.`);
        setText(kind, about.kind);
        setText(state, about.state === "filling" && !isNothing(about.filled) ? `filling, ${percent(about.filled)}` : about.state);
        state.className = `state ${{ running: "good", failed: "bad" }[about.state] ?? "busy"}`;
        setText(figures, isNothing(about.rows) ? "" : things(about.rows, "row"));
        setText(definition, about.definition ?? "");
        problems.replaceChildren(...(about.reason ? [problemBox(new Error(about.reason))] : []));
        if (!isBegun && about.state !== "declared") {
          isBegun = true;
          const name = `${quoted(about.schema)}.${quoted(about.relation)}`;
          if (about.kind === "materialized view") ends.push(operators(plans, name, kept, keep));
          await showRows(live, about, name, kept, keep, ends);
        }
        await showErrors(errors, of);
      },
      failed,
    ),
  );
  return () => ends.forEach((end) => end());
}

/** The operators as a picture, and sentences beside it. */
function operators(place, name, kept, keep) {
  place.hidden = false;
  let [found, chosen, states] = [null, null, []];
  const beside = el("div", { class: "sentences", tabindex: "0", role: "region", "aria-label": "Sentences" });
  let told = "";
  const tell = () => {
    const next = JSON.stringify(chosen === null ? [found.title, found.sentences, worst(found), states] : found.nodes[chosen]);
    if (next === told) return;
    told = next;
    beside.replaceChildren(...(chosen === null ? whole(found, states, (id) => graph.reveal(id)) : one(found.nodes[chosen])));
  };
  const graph = new Graph((id) => {
    graph.chosen = chosen = id;
    graph.warm();
    tell();
  });
  graph.heat = kept.heat;
  const heats = choice("Heat", [["time", "Time"], ["bytes", "Bytes"]], kept.heat, (heat) => {
    keep(Object.assign(kept, { heat }));
    graph.heat = heat;
    graph.warm();
  });
  const problem = el("div");
  place.append(
    el("div", { class: "bar-of-table" }, el("h2", null, "Operators"), el("span", { class: "many" }, "heat by"), heats, graph.zooms),
    problem,
    el("div", { class: "beside" }, graph.element, beside),
  );
  const failed = (error) => problem.replaceChildren(problemBox(error));
  let turn = 0;
  return poll(
    2_000,
    async () => {
      found = await analyzed(name);
      if (turn++ % 5 === 0) states = await keptStates(name);
      if (chosen !== null && !found.nodes[chosen]) chosen = graph.chosen = null;
      graph.show(found);
      problem.replaceChildren();
      // What somebody has selected, or goes through by keys, stays.
      if (![document.getSelection()?.anchorNode, document.activeElement].some((one) => one && beside.contains(one)) || told === "") tell();
    },
    failed,
  );
}

/** The operators of which there are sentences, the worst first. */
function worst({ nodes }) {
  return nodes.filter((node) => node.sentences?.length > 0).sort((a, b) => a.rank - b.rank);
}

/** Sentences about the plan. `reveal` shows an operator. */
function whole(found, states, reveal) {
  const about = (node) => [
    el("h3", null, el("button", { type: "button", class: "to", onclick: () => reveal(node.id) }, el("span", { class: "rank" }, String(node.rank)), node.operation)),
    ...node.sentences.map((sentence) => el("p", null, sentence)),
  ];
  return [
    el("p", { class: "lead" }, found.title),
    ...found.sentences.map((sentence) => el("p", { class: "what-helps" }, sentence)),
    ...worst(found).flatMap(about),
    el("h3", null, "What it keeps, and why"),
    ...states.map(({ depth, kind, text }) => el("p", { class: `deep-${Math.min(depth, 6)} ${kind}` }, text)),
  ];
}

/** Sentences about an operator. */
function one(node) {
  const { waiting } = node;
  const figures = waiting ? [
    ["epochs that wait", count(waiting.epochs)], ["rows of them", count(waiting.rows)], ["bytes of them", bytes(waiting.bytes)],
    ["the first waits for", nanoseconds(waiting.first_ns)],
  ] : [
    ["time", nanoseconds(node.busy_ns)], ["rows out", count(node.rows_out)], ["bytes out", bytes(node.bytes_out)],
    ["keeps", isNothing(node.kept_rows) ? "nothing of its own" : `${things(node.kept_rows, "row")}, ${bytes(node.kept_bytes)}`],
  ];
  return [
    el("h3", null, node.operation),
    el("dl", { class: "pairs" }, ...figures.flatMap(([name, text]) => [el("dt", null, name), el("dd", null, text)])),
    ...(node.clause ? [el("p", null, node.clause)] : []),
    ...node.details.map((detail) => el("p", null, detail)),
    ...(node.sentences ?? []).map((sentence) => el("p", { class: "what-helps" }, sentence)),
  ];
}

async function showErrors(place, of) {
  const found = await rows(FAILURES, [of]).catch(() => []);
  if (found.length === 0) return place.replaceChildren();
  place.replaceChildren(
    el("section", { class: "errors" }, el("h2", null, "Errors"), ...found.map((row) => el("p", null, el("b", null, row.message), ` in ${row.expression} of ${row.row}`))),
  );
}

/** The rows, which are followed unless they are too many. */
async function showRows(place, about, name, kept, keep, ends) {
  const columns = await rows(COLUMNS, [about.schema, about.relation]);
  const note = el("span", { class: "many" });
  const table = new Table({ columns: columnsOf(columns), label: `Rows of ${about.name}`, sort: kept.sort, sorted: (sort) => keep(Object.assign(kept, { sort })) });
  place.replaceChildren(el("div", { class: "bar-of-table" }, el("h2", null, "Rows"), note), table.element);
  if (isNothing(about.rows)) {
    setText(note, about.kind === "table" ? "the table keeps no rows" : "the view keeps no rows: SELECT computes them");
    table.element.remove();
    return;
  }
  if (about.rows > MOST_FOLLOWED) {
    table.rows = await rows(`SELECT * FROM ${name} LIMIT ${FIRST}`);
    setText(note, `${count(FIRST)} of ${count(about.rows)} rows as they were when the page was opened: more than ${count(MOST_FOLLOWED)} are not followed`);
    return;
  }
  place.classList.add("live");
  ends.push(
    follow(
      about.name,
      (all, epoch) => {
        setText(note, `live, as of epoch ${count(epoch)}`);
        table.rows = all;
      },
      (error) => setText(note, plain(error.message)),
    ),
  );
}
