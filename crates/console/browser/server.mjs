// A server behind a connection that a test can cut.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = new URL("../../../", import.meta.url).pathname;
const BINARY = process.env.ALLUVIUM ?? "alluvium";
/** So many bids, and a tenth of auctions, are inserted at a time, with a pause after it. */
const [EVENTS, PAUSE] = [500, 300];

/** Queries of Nexmark: joins, aggregates, windows, the last of each. */
const QUERIES = ["q4", "q5", "q9", "q16", "q18"];

/** Bids are written to a file as they come. */
const OUTPUT = "CREATE VIEW bids WITH (connector = 'file', path = '${FOLDER}/bids.csv') AS SELECT auction, price FROM bid WHERE price > 900;";

/** The tables and views of the flights tutorial, and of Nexmark. */
export function programs() {
  const read = (file) => readFileSync(join(ROOT, file), "utf8");
  const flights = read("docs/tutorial/flights.sql").split("-- 3. Reading the views")[0];
  const queries = QUERIES.map((query) => read(`nexmark/queries/${query}.sql`).replace(`CREATE VIEW ${query}`, `CREATE MATERIALIZED VIEW ${query}`));
  return [flights, read("nexmark/queries/tables.sql"), ...queries, OUTPUT].join("\n");
}

/** So many views, and a view of two operators for each of so many branches. */
export function large(views, branches) {
  const many = Array.from({ length: views }, (_, n) => `CREATE MATERIALIZED VIEW many_${n} AS SELECT v, COUNT(*) AS n FROM t WHERE k > ${n} GROUP BY v;`);
  const all = Array.from({ length: branches }, (_, n) => `SELECT DISTINCT v + ${n} AS v FROM t WHERE v % ${branches} = ${n}`);
  return `CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT);\n${many.join("\n")}\nCREATE MATERIALIZED VIEW large AS ${all.join(" UNION ALL ")};\nINSERT INTO t SELECT k, k FROM generate_series(1, 2000) AS s(k);`;
}

/** Statements that insert the next auctions and bids of Nexmark. */
function events(from) {
  const time = (n) => `TIMESTAMP '2026-01-01 00:00:00' + ${n} * INTERVAL '1 second'`;
  return [
    `INSERT INTO auction SELECT n, 'item', 'text', 1, 10, ${time("n")}, ${time("(n + 600)")}, n % 100, n % 10, '' FROM generate_series(${from}, ${from + EVENTS / 10 - 1}) AS s(n)`,
    `INSERT INTO bid SELECT ${from} + n % ${EVENTS / 10}, n % 300, n * 7 % 1000, 'web', 'page', ${time(`(${from} + n % 900)`)}, '', ${time("n")} FROM generate_series(1, ${EVENTS}) AS s(n)`,
  ];
}

/** Starts a server of a program; `stop` ends it. `prepare` is called with the folder `FOLDER` of the program. */
export async function serve(program = programs(), workers = 1, prepare = () => {}) {
  const folder = mkdtempSync(join(tmpdir(), "alluvium-console-"));
  const file = join(folder, "program.sql");
  writeFileSync(file, program);
  prepare(folder);
  const data = `DATA=${join(ROOT, "docs/tutorial/data")}`;
  const options = ["--set", data, "--set", `FOLDER=${folder}`, "--http", "127.0.0.1:0", "--socket", folder, "--workers", String(workers)];
  const child = spawn(BINARY, ["serve", file, ...options], { stdio: ["ignore", "inherit", "pipe"] });
  const port = await new Promise((found, failed) => {
    let text = "";
    child.stderr.on("data", (bytes) => {
      text += bytes;
      const line = /http:\/\/127\.0\.0\.1:(\d+), with the token/.exec(text);
      if (line) found(Number(line[1]));
    });
    child.on("exit", () => failed(new Error(`the server has ended: ${text}`)));
    child.on("error", failed);
  });
  const token = readFileSync(join(folder, "http.token"), "utf8").trim();
  const line = await cuttable(port);
  const sql = async (text) => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/sql`, {
      method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` }, body: JSON.stringify({ sql: text }),
    });
    const body = await answer.json();
    if (!answer.ok) throw new Error(`${text}: ${body.detail}`);
    return body;
  };
  let next = 0;
  const insert = async () => {
    for (const statement of events(next)) await sql(statement);
    next += EVENTS / 10;
  };
  return {
    token, sql, line, url: `http://127.0.0.1:${line.port}`, folder,
    /** Inserts events until what it returns is called. */
    load: () => {
      let isOver = false;
      const all = (async () => {
        while (!isOver) {
          await insert();
          await new Promise((passed) => setTimeout(passed, PAUSE));
        }
      })();
      return async () => {
        isOver = true;
        await all;
      };
    },
    /** Begins a transaction with a statement; `end` rolls it back. */
    transaction: (statement) => {
      const shell = spawn(BINARY, ["shell", "--connect", folder], { stdio: ["pipe", "ignore", "inherit"] });
      shell.stdin.write(`BEGIN;\n${statement};\n`);
      const gone = new Promise((gone) => shell.on("exit", gone));
      return {
        end: () => {
          shell.stdin.end("ROLLBACK;\n");
          return gone;
        },
      };
    },
    stop: async () => {
      line.close();
      const gone = new Promise((gone) => child.on("exit", gone));
      child.kill("SIGTERM");
      await gone;
      rmSync(folder, { recursive: true });
    },
  };
}

/** Passes connections on to a port, until they are cut. */
async function cuttable(to) {
  const open = new Set();
  let isCut = false;
  const server = net.createServer((from) => {
    if (isCut) return from.destroy();
    const further = net.connect(to, "127.0.0.1");
    for (const [one, other] of [[from, further], [further, from]]) {
      open.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => (open.delete(one), other.destroy()));
      one.pipe(other);
    }
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    port: server.address().port,
    cut: () => {
      isCut = true;
      open.forEach((one) => one.destroy());
    },
    mend: () => (isCut = false),
    close: () => {
      open.forEach((one) => one.destroy());
      server.close();
    },
  };
}
