// Two hundred views, and a view of two thousand operators: what is not seen has no elements.

import assert from "node:assert/strict";
import { test } from "node:test";
import { open, page, serves } from "./pages.mjs";
import { large } from "./server.mjs";

serves({ program: large(200, 1_000) });

/** The boxes of a plan that have elements. */
const boxes = () => page.locator(".plan .box").count();
/** The boxes that are seen from afar. */
const shapes = () => page.locator(".plan .far path").first().evaluate((path) => path.getAttribute("d").split("z").length - 1);
/** The lines between boxes. */
const ways = () => page.locator(".plan .way").evaluate((way) => way.getAttribute("d").split("M").length - 1);
/** Presses a button that changes the size, and waits for the boxes. */
const size = async (name) => {
  await page.getByRole("button", { name }).click();
  await page.evaluate(() => new Promise(requestAnimationFrame));
};

test("a table of two hundred views has elements for the rows that are seen", async () => {
  await open("#/?filter=many_");
  await page.getByText(/200 of \d+/).waitFor({ timeout: 60_000 });
  assert.ok((await page.locator("tbody tr").count()) < 80);
  await page.locator(".scroller").evaluate((scroller) => (scroller.scrollTop = scroller.scrollHeight));
  await page.locator("tbody a").getByText("many_99", { exact: true }).waitFor();
  assert.ok((await page.locator("tbody tr").count()) < 80);
});

test("a plan of two thousand operators has elements for the boxes that are seen", async () => {
  await open("#/view/large");
  const graph = page.getByRole("region", { name: "Plan" });
  await page.locator(".plan .box").first().waitFor({ timeout: 60_000 });
  assert.ok((await boxes()) < 100, `${await boxes()} boxes`);
  // Those that scroll into sight are drawn, and the others go.
  const first = await page.locator(".plan .box").first().getAttribute("data-id");
  await graph.evaluate((graph) => graph.scrollTo(0, graph.scrollHeight / 2));
  await page.locator(`.plan .box[data-id="${first}"]`).waitFor({ state: "detached" });
  assert.ok((await boxes()) > 4 && (await boxes()) < 100, `${await boxes()} boxes`);
  // From afar all are seen, as shapes without letters.
  await size("All of it");
  assert.ok((await boxes()) <= 1, `${await boxes()} boxes`);
  assert.equal(await shapes(), 2_003);
  assert.equal(await ways(), 3_001);
  assert.equal(await page.locator(".plan text").count(), 0);
  while ((await page.locator(".plan text").count()) === 0) await size("Larger");
  assert.ok((await boxes()) > 4 && (await boxes()) < 400, `${await boxes()} boxes`);
  assert.equal(await shapes(), 0);
  assert.ok((await ways()) > 4 && (await ways()) < 1_500, `${await ways()} ways`);
  // The wheel does the same, around the mouse.
  await graph.hover();
  await page.keyboard.down("Control");
  for (let turn = 0; turn < 4; turn++) await page.mouse.wheel(0, -100);
  await page.keyboard.up("Control");
  await page.waitForFunction(() => document.querySelectorAll(".plan .box").length < 100);
});

test("the keyboard goes from operator to operator", async () => {
  await open("#/view/large");
  await page.locator(".plan .box").first().waitFor({ timeout: 60_000 });
  const focused = () => page.evaluate(() => document.activeElement.dataset.id);
  await page.locator('.plan .box[tabindex="0"]').focus();
  assert.equal(await focused(), "0");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "1");
  await page.keyboard.press("ArrowDown");
  const input = await focused();
  for (let turn = 0; turn < 20; turn++) await page.keyboard.press("ArrowRight");
  assert.notEqual(await focused(), input);
  assert.ok(await page.evaluate(() => {
    const [graph, box] = [document.querySelector(".graph"), document.activeElement].map((one) => one.getBoundingClientRect());
    return box.left >= graph.left && box.right <= graph.right && box.top >= graph.top && box.bottom <= graph.bottom;
  }));
  await page.keyboard.press("ArrowUp");
  assert.equal(await focused(), "1");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".box.chosen").getAttribute("data-id"), "1");
  await page.keyboard.press("0");
  assert.equal(await shapes(), 2_003);
  // An operator is found by the mouse as well.
  const edge = await page.locator(".plan .far").boundingBox();
  await page.mouse.click(edge.x + 5, edge.y + edge.height / 4);
  await page.waitForFunction(() => !["1", undefined].includes(document.querySelector(".box.chosen")?.dataset.id));
});
