// Walks all pages, of the flights tutorial and of Nexmark while it runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { context, expects, open, page, row, server, serves } from "./pages.mjs";

const EVIL = `<img src=x onerror="document.title='broken'">`;
const [EVIL_NAME, EVIL_TEXT] = [`"${EVIL.replaceAll('"', '""')}"`, `'${EVIL.replaceAll("'", "''")}'`];

let rest = async () => {};

serves({
  begun: async () => {
    await server.sql(`CREATE TABLE ${EVIL_NAME} (k BIGINT PRIMARY KEY, ${EVIL_NAME} VARCHAR)`);
    await server.sql(`INSERT INTO ${EVIL_NAME} VALUES (1, ${EVIL_TEXT})`);
    rest = server.load();
  },
  ended: () => rest(),
});

const names = () => page.locator("tbody tr:not(.gap) td:first-child").allTextContents();

test("the overview lists what runs, sorts, filters, and keeps that in the address", async () => {
  await row("delays_by_carrier_and_hour").waitFor();
  assert.match(await page.locator(".figures").innerText(), /22 views/);
  assert.match(await page.locator("#link").innerText(), /epoch \d+/);
  await page.getByRole("button", { name: "Rows" }).click();
  assert.equal(await page.locator("th[aria-sort=descending]").innerText(), "Rows");
  assert.equal((await names())[0], "flights");
  await page.getByLabel("Filter by name").fill("fleet");
  assert.deepEqual((await names()).sort(), ["fleet", "fleet_age", "fleet_size"]);
  await page.waitForURL(/#\/\?sort=-rows&filter=fleet$/);
  await page.reload();
  await row("fleet_size").waitFor();
  assert.deepEqual((await names())[0], "fleet");
});

test("the overview draws latencies while epochs come", async () => {
  await row("airlines").waitFor();
  await page.waitForFunction(() => document.querySelector(".time .line-1").getAttribute("d")?.length > 10);
  assert.match(await page.locator(".time").first().innerText(), /p50 [\d.]+ [µm]?s/);
});

test("a view shows its operators, heat, sentences and rows as they change", async () => {
  await open("#/view/delays_by_carrier_and_hour");
  const boxes = page.locator(".plan .box");
  await boxes.first().waitFor();
  assert.ok((await boxes.count()) >= 8);
  assert.match(await page.locator(".sentences").innerText(), /never pruned/);
  const time = await page.locator(".plan .figure").allTextContents();
  await page.getByRole("button", { name: "Bytes" }).click();
  assert.notDeepEqual(await page.locator(".plan .figure").allTextContents(), time);
  await page.waitForURL(/heat=bytes/);
  const aggregate = boxes.filter({ hasText: "aggregate" }).first();
  await aggregate.focus();
  await page.keyboard.press("Enter");
  assert.equal(await aggregate.getAttribute("aria-pressed"), "true");
  assert.match(await page.locator(".sentences").innerText(), /rows out/);
  await page.getByText(/live, as of epoch/).waitFor();
});

test("rows of a view change by themselves", async () => {
  await open("#/view/totals");
  const before = await row("").first().innerText();
  await server.sql("DELETE FROM flights WHERE carrier = 'HA' AND day = 2");
  await page.waitForFunction((before) => document.querySelector("tbody tr:not(.gap)").innerText !== before, before);
});

/** A table by its name. */
const table = (name) => page.getByRole("region", { name });

/** Sorts a table by a column, and returns the texts of its first column. */
async function sorted(name, column) {
  await table(name).getByRole("button", { name: column, exact: true }).click();
  return table(name).locator("tbody tr:not(.gap) td:first-child").allTextContents();
}

test("sources and outputs are listed and sorted", async () => {
  await open("#/connectors");
  await row("weather").first().waitFor();
  assert.equal((await sorted("Sources", "rows"))[0], "flights");
  assert.deepEqual(await sorted("Sources", "relation"), ["airlines", "flights", "planes", "weather"]);
  const heads = await table("Outputs").locator("th").allTextContents();
  assert.equal(new Set(heads).size, heads.length, heads.join());
  assert.ok(heads.includes("lag bytes") && heads.includes("lag time"), heads.join());
  await page.waitForURL(/#\/connectors\?sources-sort=relation$/);
  await page.reload();
  await row("weather").first().waitFor();
  await table("Outputs").getByRole("link", { name: "bids" }).click();
  await page.getByRole("heading", { name: "bids" }).waitFor();
});

test("memory and merges are listed and sorted", async () => {
  await open("#/state");
  await row("counted").waitFor();
  assert.deepEqual((await sorted("Memory and files", "kind")).slice(0, 2), ["counted", "files"]);
  await table("Merges and moves to files").getByText("done").first().waitFor();
  await page.waitForURL(/memory-sort=kind/);
});

test("sessions and locks are listed while a transaction holds a row", async () => {
  const update = "UPDATE airlines SET name = name WHERE carrier = 'AA'";
  const [one, other] = [server.transaction(update), server.transaction(update)];
  await open("#/sessions");
  await row("idle in transaction").waitFor();
  await sorted("Sessions", "statements");
  await open("#/locks");
  await row("(carrier) = (AA)").and(row("false")).waitFor();
  const first = await sorted("Locks", "granted");
  await Promise.all([one.end(), other.end()]);
  await page.getByText("No lock is held.").waitFor();
  assert.equal(first.length, 4);
});

test("a statement is completed, run by the keyboard, and kept in the address", async () => {
  await open("#/sql");
  const box = page.getByLabel("Statement");
  await box.pressSequentially("SELECT * FROM delays_by_c");
  await page.getByRole("option", { name: /^delays_by_carrier relation/ }).waitFor();
  await page.keyboard.press("Enter");
  assert.equal(await box.inputValue(), "SELECT * FROM delays_by_carrier");
  await page.keyboard.press("Control+Enter");
  await page.getByText(/live: a subscription to delays_by_carrier, 1\d rows/).waitFor();
  await page.getByRole("button", { name: "scheduled" }).click();
  assert.equal((await names())[0], "United Air Lines Inc.");
  await page.getByRole("button", { name: "Bar" }).click();
  await page.locator("svg .bar rect").first().waitFor();
  await page.reload();
  await page.locator("svg .bar rect").first().waitFor();
  await page.getByRole("button", { name: "Number" }).click();
  await page.locator("figure.large b").waitFor();
  await open(`#/sql?q=${encodeURIComponent("SELECT day, scheduled, cancelled FROM days")}&as=line`);
  await page.locator("svg .line-1").waitFor();
});

test("values that a script cannot hold stay as they are", async () => {
  await open(`#/sql?q=${encodeURIComponent("SELECT 9007199254740993 AS big, CAST(1.50 AS DECIMAL(8, 2)) AS price, NULL AS nothing")}`);
  await row("NULL").waitFor();
  assert.deepEqual(await page.locator("tbody tr:not(.gap) td").allTextContents(), ["9007199254740993", "1.50", "NULL"]);
});

test("columns of one name are told apart", async () => {
  await open(`#/sql?q=${encodeURIComponent("SELECT 1 AS n, 2 AS n")}`);
  await row("1").waitFor();
  assert.deepEqual(await page.locator("tbody tr:not(.gap) td").allTextContents(), ["1", "2"]);
  assert.deepEqual(await page.locator("th").allTextContents(), ["n", "n_2"]);
});

test("an error has its place", async () => {
  await open("#/sql");
  await page.getByLabel("Statement").fill("SELECT day,\n       cost FROM days");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("alert").getByText(/no column "cost"/).waitFor();
  assert.equal(await page.locator(".caret").getAttribute("data-place"), "2:8");
  expects(/400/);
});

test("names and values are never markup", async () => {
  await row("onerror").waitFor();
  await row("onerror").locator("a").click();
  await page.getByRole("heading", { name: /onerror/ }).waitFor();
  await row("onerror").waitFor();
  await page.locator("summary").click();
  await open(`#/sql?q=${encodeURIComponent(`SELECT ${EVIL_TEXT} AS ${EVIL_NAME}`)}`);
  await row("onerror").waitFor();
  await page.getByRole("button", { name: "Bar" }).click();
  await page.getByRole("button", { name: "Number" }).click();
  assert.equal(await page.locator("main img").count(), 0);
  assert.ok(!(await page.title()).includes("broken"));
});

test("a connection that is lost comes back by itself", async () => {
  await open("#/view/totals");
  await page.getByText(/live, as of epoch/).waitFor();
  const before = await row("").first().innerText();
  server.line.cut();
  await page.getByText("The connection is lost. Trying again …").waitFor();
  await server.sql("DELETE FROM flights WHERE carrier = 'HA' AND day = 3");
  server.line.mend();
  await page.locator("#link[data-state=there]").waitFor();
  await page.waitForFunction((before) => document.querySelector("tbody tr:not(.gap)").innerText !== before, before, { timeout: 30_000 });
  expects(/ERR_|Failed to load/);
});

test("every page comes back after its connection was lost", async () => {
  const places = ["#/", "#/connectors", "#/state", "#/sessions", "#/locks", "#/sql?q=SELECT+*+FROM+days", "#/view/q4"];
  const pages = await Promise.all(places.map(async (place) => {
    const one = await context.newPage();
    await one.goto(`${server.url}/console/${place}`);
    await one.locator("#link[data-state=there]").waitFor();
    if (place.startsWith("#/sql")) await one.getByText(/live: a subscription/).waitFor();
    return one;
  }));
  server.line.cut();
  await Promise.all(pages.map((one) => one.locator("#link[data-state=lost]").waitFor()));
  server.line.mend();
  await Promise.all(pages.map(async (one) => {
    await one.locator("#link[data-state=there]").waitFor({ timeout: 30_000 });
    const epoch = await one.locator("#link").innerText();
    await one.waitForFunction((epoch) => document.getElementById("link").innerText !== epoch, epoch);
    assert.equal(await one.getByRole("alert").count(), 0);
  }));
  expects(/ERR_|Failed to load/);
});

/** Presses a key, which is Tab, until something of this name has the focus. */
async function tab(name, key = "Tab") {
  const seen = [];
  for (let turn = 0; turn < 60; turn++) {
    await page.keyboard.press(key);
    const focused = await page.evaluate(() => (document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim()).slice(0, 40));
    if (focused === name) return;
    seen.push(focused);
  }
  assert.fail(`${name} is not reached: ${seen}`);
}

test("all is reached by the keyboard", async () => {
  await row("airlines").waitFor();
  await tab("Skip to the page");
  await page.keyboard.press("Enter");
  await tab("Filter by name");
  await page.keyboard.type("delays_by_carrier");
  await tab("Rows");
  await page.keyboard.press("Space");
  await tab("delays_by_carrier_and_hour");
  await page.keyboard.press("Enter");
  await page.locator(".plan .box").first().waitFor();
  await tab("Bytes");
  await page.keyboard.press("Space");
  await page.waitForURL(/view\/delays_by_carrier_and_hour\?heat=bytes/);
  await tab("All of it");
  await page.keyboard.press("Enter");
  await tab("Plan");
  await page.keyboard.press("+");
  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".box.chosen").getAttribute("data-id"), "1");
  await page.locator(".sentences dt").first().waitFor();
  await tab("Definition");
  await page.keyboard.press("Enter");
  await page.locator(".definition pre").waitFor({ state: "visible" });
  await tab("SQL", "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByLabel("Statement").waitFor();
  await page.keyboard.type("SELECT 1 + 1 AS two");
  await page.keyboard.press("Control+Enter");
  await row("2").waitFor();
  await tab("Number");
  await page.keyboard.press("Space");
  await page.locator("figure.large b").waitFor();
});

test("a login that has ended leads to the page that says how to log in", async () => {
  await row("airlines").waitFor();
  await context.clearCookies();
  await page.getByLabel("Token").waitFor();
  await page.getByLabel("Token").fill("0".repeat(64));
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.getByText("The server does not know this token.").waitFor();
  await page.getByLabel("Token").fill(server.token);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await row("airlines").waitFor();
  expects(/401/);
});

test("a role logs in by its password, and a token that is revoked ends that", async () => {
  await rest();
  await server.sql("CREATE ROLE ann LOGIN SUPERUSER PASSWORD 'correct horse battery'");
  // From now on the token of the server lets nobody in.
  await page.getByLabel("Role").waitFor();
  await page.getByLabel("Role").fill("ann");
  await page.getByLabel("Password").fill("correct horse battery");
  await page.getByRole("button", { name: "Log in as a role" }).click();
  await row("airlines").waitFor();
  const ended = await fetch(`${server.url}/v1/tokens`, { method: "DELETE", headers: { Authorization: `Basic ${btoa("ann:correct horse battery")}` } });
  assert.equal(ended.status, 200);
  await page.getByLabel("Role").waitFor();
  expects(/401/);
});
