// A server of the flights tutorial and of a Nexmark query, behind a connection that a test can cut.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = new URL("../../../", import.meta.url).pathname;
const BINARY = process.env.ALLUVIUM ?? "alluvium";
const EVENTS = 2_000;

/** The tables and views of the tutorial, and query 4 of Nexmark. */
function program() {
  const flights = readFileSync(join(ROOT, "docs/tutorial/flights.sql"), "utf8").split("-- 3. Reading the views")[0];
  const tables = readFileSync(join(ROOT, "nexmark/queries/tables.sql"), "utf8");
  const query = readFileSync(join(ROOT, "nexmark/queries/q4.sql"), "utf8").replace("CREATE VIEW q4", "CREATE MATERIALIZED VIEW q4");
  return `${flights}\n${tables}\n${query}`;
}

/** Statements that insert the next auctions and bids of Nexmark. */
export function events(from) {
  const time = (n) => `TIMESTAMP '2026-01-01 00:00:00' + ${n} * INTERVAL '1 second'`;
  return [
    `INSERT INTO auction SELECT n, 'item', 'text', 1, 10, ${time("n")}, ${time("(n + 600)")}, n % 100, n % 10, '' FROM generate_series(${from}, ${from + EVENTS / 10 - 1}) AS s(n)`,
    `INSERT INTO bid SELECT ${from} + n % ${EVENTS / 10}, n % 300, n * 7 % 1000, 'web', 'page', ${time(`(${from} + n % 900)`)}, '', ${time("n")} FROM generate_series(1, ${EVENTS}) AS s(n)`,
  ];
}

/** Starts a server; `stop` ends it. */
export async function serve() {
  const folder = mkdtempSync(join(tmpdir(), "alluvium-console-"));
  const file = join(folder, "program.sql");
  writeFileSync(file, program());
  const data = `DATA=${join(ROOT, "docs/tutorial/data")}`;
  const child = spawn(BINARY, ["serve", file, "--set", data, "--http", "127.0.0.1:0", "--socket", folder], { stdio: ["ignore", "inherit", "pipe"] });
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
  return {
    token, sql, line, url: `http://127.0.0.1:${line.port}`,
    insert: async (from) => {
      for (const statement of events(from)) await sql(statement);
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
