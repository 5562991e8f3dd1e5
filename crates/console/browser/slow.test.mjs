// Programs that are slow for a reason: the console marks the operator, and has the sentence that says why and what would help.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { test } from "node:test";
import { open, page, serves } from "./pages.mjs";

const TABLES = `
CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT);
CREATE TABLE u (v BIGINT, w BIGINT);
`;

/** For each view its query, a table's rows that make it slow, the operator, and the sentence. */
const PROGRAMS = {
  "a skewed key": {
    query: "SELECT v / 100000 AS one, MAX(k) AS k FROM t GROUP BY v / 100000",
    operator: /aggregate max/, sentence: /worker \d does \d+ % of it: many rows have one key/,
  },
  "a join without an equality": {
    query: "SELECT COUNT(*) AS n FROM t, u WHERE (t.v + u.v) % 7 = u.w",
    operator: /cross join/, sentence: /it has no equality, so each change meets all rows/,
  },
  "state that is never pruned": {
    query: "SELECT v, MAX(k) AS k FROM t GROUP BY v",
    operator: /aggregate max/, sentence: /it keeps \d+ rows, \d+ bytes: .*the key has no time, so a later row can change any group/,
  },
  "a window that is evaluated again": {
    query: "SELECT k, NTILE(4) OVER (PARTITION BY v / 100000 ORDER BY k) AS quarter FROM t",
    operator: /window ntile/, sentence: /each change evaluates all rows of its partition again/,
  },
  "an output that does not keep up": {
    // Nobody reads the pipe, which has room for fewer rows.
    output: "WITH (connector = 'file', path = '${FOLDER}/pipe.csv', mode = 'changes')", query: "SELECT k, REPEAT('x', 50) AS text FROM t",
    operator: /write changes to/, sentence: /it is late, .*\d+ epochs? with \d+ rows, \d+ bytes, wait/,
  },
};
const named = Object.entries(PROGRAMS).map(([name, program], at) => ({ name, view: `slow_${at}`, ...program }));
const views = named.map(({ view, output = "", query }) => `CREATE MATERIALIZED VIEW ${view} ${output} AS ${query};`);
const rows = Array.from({ length: 10 }, (_, at) => `INSERT INTO t SELECT k, k / 2 FROM generate_series(${at * 500}, ${at * 500 + 499}) AS s(k);`);

let pipe;
serves({
  program: `${TABLES}${views.join("\n")}\nINSERT INTO u SELECT v, 0 FROM generate_series(0, 99) AS s(v);\n${rows.join("\n")}`, workers: 2,
  prepare: (folder) => {
    execFileSync("mkfifo", [`${folder}/pipe.csv`]);
    pipe = openSync(`${folder}/pipe.csv`, "r+");
  },
  ended: async () => closeSync(pipe),
});

for (const { name, view, operator, sentence } of named) {
  test(`${name} is named`, async () => {
    await open(`#/view/${view}`);
    const said = page.locator(".sentences p", { hasText: sentence }).first();
    await said.waitFor();
    // The sentence stands below the name of its operator, which leads to the box.
    const heading = page.locator(".sentences h3", { has: page.locator("button") }).filter({ hasText: operator }).first();
    const place = await heading.locator(".rank").innerText();
    await heading.getByRole("button").click();
    const box = page.locator(".plan .box.worst:focus");
    assert.equal(await box.locator(".rank text").textContent(), place);
    assert.match(await box.locator("title").textContent(), operator);
    await page.keyboard.press("Enter");
    await page.locator(".sentences .what-helps", { hasText: sentence }).waitFor();
  });
}
