// A page of the console in Chromium for each test of a file. Anything that the browser's console reports as an error fails the test.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach } from "node:test";
import { chromium } from "playwright-core";
import { serve } from "./server.mjs";

export let [server, context, page, errors] = [];

/** Starts a browser. */
export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
}

/** Serves a program for the tests of a file. `begun` is called once it is served, and `ended` before that ends. */
export function serves({ program, workers, prepare, begun = async () => {}, ended = async () => {} } = {}) {
  let browser;
  before(async () => {
    server = await serve(program, workers, prepare);
    await begun();
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    await ended();
    await server?.stop();
  });
  beforeEach(async () => {
    context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    context.setDefaultTimeout(15_000);
    errors = [];
    context.on("weberror", (error) => errors.push(error.error().stack));
    context.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    context.on("request", (request) => request.url().startsWith(server.url) || errors.push(`asks ${request.url()}`));
    page = await context.newPage();
    await page.goto(`${server.url}/login?token=${server.token}`);
    await page.waitForURL("**/console/");
  });
  afterEach(async () => {
    await context.close();
    assert.deepEqual(errors, []);
  });
}

/** Opens the page of an address. */
export function open(place) {
  return page.goto(`${server.url}/console/${place}`);
}

/** Rows of tables that have a text. */
export function row(text) {
  return page.locator("tbody tr:not(.gap)", { hasText: text });
}

/** Takes these errors for granted: a browser reports answers that a test asks for. */
export function expects(expected) {
  assert.ok(errors.every((error) => expected.test(error)), errors.join("\n"));
  errors.length = 0;
}
