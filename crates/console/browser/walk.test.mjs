// Walks all pages of the console in Chromium. Anything that the browser's console reports as an error fails.

import assert from "node:assert/strict";
import { after, before, beforeEach, afterEach, test } from "node:test";
import { chromium } from "playwright-core";
import { serve } from "./server.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const EVIL = `<img src=x onerror="document.title='broken'">`;

let [server, browser, context, page, errors] = [];

before(async () => {
  server = await serve();
  await server.insert(0);
  await server.sql(`CREATE TABLE "${EVIL.replaceAll('"', '""')}" (k BIGINT PRIMARY KEY, "${EVIL.replaceAll('"', '""')}" VARCHAR)`);
  await server.sql(`INSERT INTO "${EVIL.replaceAll('"', '""')}" VALUES (1, '${EVIL.replaceAll("'", "''")}')`);
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

beforeEach(async () => {
  context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  page = await context.newPage();
  page.setDefaultTimeout(15_000);
  errors = [];
  page.on("pageerror", (error) => errors.push(error.stack));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("request", (request) => request.url().startsWith(server.url) || errors.push(`asks ${request.url()}`));
  await page.goto(`${server.url}/login?token=${server.token}`);
  await page.waitForURL("**/console/");
});

afterEach(async () => {
  await context.close();
  assert.deepEqual(errors, []);
});

const open = (place) => page.goto(`${server.url}/console/${place}`);
const row = (text) => page.locator("tbody tr:not(.gap)", { hasText: text });
const names = () => page.locator("tbody tr:not(.gap) td:first-child").allTextContents();

test("the overview lists what runs, sorts, filters, and keeps that in the address", async () => {
  await row("delays_by_carrier_and_hour").waitFor();
  assert.match(await page.locator(".figures").innerText(), /15 views/);
  assert.match(await page.locator("#link").innerText(), /epoch \d+/);
  await page.getByRole("button", { name: "Rows" }).click();
  assert.equal(await page.locator("th[aria-sort=descending]").innerText(), "Rows");
  assert.equal((await names())[0], "flights");
  await page.getByLabel("Filter by name").fill("fleet");
  assert.deepEqual((await names()).sort(), ["fleet", "fleet_age", "fleet_size"]);
  assert.match(page.url(), /#\/\?sort=-rows&filter=fleet$/);
  await page.reload();
  await row("fleet_size").waitFor();
  assert.deepEqual((await names())[0], "fleet");
});

test("the overview draws latencies while epochs come", async () => {
  await row("airlines").waitFor();
  for (let turn = 1; turn <= 8; turn++) {
    await server.insert(turn * 1_000);
    await page.waitForTimeout(300);
  }
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
  assert.match(page.url(), /heat=bytes/);
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

test("sources, outputs, sessions and locks are listed", async () => {
  await open("#/connectors");
  await row("flights").first().waitFor();
  await open("#/sessions");
  await row("").first().waitFor();
  await open("#/locks");
  await page.getByRole("heading", { name: "Locks" }).first().waitFor();
  await page.getByText("No lock is held.").waitFor();
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

test("an error has its place", async () => {
  await open("#/sql");
  await page.getByLabel("Statement").fill("SELECT day,\n       cost FROM days");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("alert").getByText(/no column "cost"/).waitFor();
  assert.equal(await page.locator(".caret").getAttribute("data-place"), "2:8");
  // The browser notes the answer 400 itself.
  assert.ok(errors.every((error) => error.includes("400")));
  errors.length = 0;
});

test("names and values are never markup", async () => {
  await row("onerror").waitFor();
  await row("onerror").locator("a").click();
  await page.getByRole("heading", { name: /onerror/ }).waitFor();
  await row("onerror").waitFor();
  await page.locator("summary").click();
  await open(`#/sql?q=${encodeURIComponent(`SELECT '${EVIL.replaceAll("'", "''")}' AS "${EVIL.replaceAll('"', '""')}"`)}`);
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
  // The browser notes each request that was not answered.
  assert.ok(errors.every((error) => /ERR_|Failed to load/.test(error)), errors.join("\n"));
  errors.length = 0;
});

test("the first paint comes within 200 ms", async () => {
  await open("#/");
  await page.reload();
  await row("airlines").waitFor();
  const paints = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint").map((entry) => entry.startTime));
  assert.ok(paints[0] < 200, `${paints[0]} ms`);
});

test("all is reached by the keyboard", async () => {
  await row("airlines").waitFor();
  const seen = [];
  for (let turn = 0; turn < 12; turn++) {
    await page.keyboard.press("Tab");
    seen.push(await page.evaluate(() => document.activeElement.textContent.trim() || document.activeElement.getAttribute("aria-label")));
  }
  for (const name of ["Skip to the page", "Overview", "Sessions", "SQL", "Filter by name"]) assert.ok(seen.includes(name), `${name}: ${seen}`);
  await page.getByRole("link", { name: "SQL" }).press("Enter");
  await page.getByLabel("Statement").waitFor();
});

test("two hundred views stay fluid", async () => {
  for (let at = 0; at < 200; at += 50) {
    const views = Array.from({ length: 50 }, (_, n) => `CREATE MATERIALIZED VIEW many_${at + n} AS SELECT a.carrier, COUNT(*) AS n FROM airlines a JOIN airlines b ON a.name = b.name WHERE a.carrier > '${n}' GROUP BY a.carrier`);
    await server.sql(views.join(";\n"));
  }
  await open("#/?filter=many_");
  await page.getByText(/200 of \d+/).waitFor({ timeout: 60_000 });
  assert.ok((await page.locator("tbody tr").count()) < 80);
  const longest = await page.evaluate(async () => {
    const scroller = document.querySelector(".scroller");
    let [longest, last] = [0, performance.now()];
    for (let turn = 0; turn < 120; turn++) {
      scroller.scrollTop += 60;
      await new Promise(requestAnimationFrame);
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }
    return longest;
  });
  assert.ok(longest < 250, `${longest} ms between two frames`);
  await page.locator("tbody a").getByText("many_99", { exact: true }).waitFor();
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
  assert.ok(errors.every((error) => error.includes("401")), errors.join("\n"));
  errors.length = 0;
});

test("a role logs in by its password, and a token that is revoked ends that", async () => {
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
  assert.ok(errors.every((error) => error.includes("401")), errors.join("\n"));
  errors.length = 0;
});
