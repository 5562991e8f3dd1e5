// Prints how fast the console is beside 200 views and 2,000 operators: medians of first paints, and the longest times between two frames.

import { launch } from "./pages.mjs";
import { large, serve } from "./server.mjs";

const TIMES = 20;

const server = await serve(large(200, 1_000));
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const page = await context.newPage();
await page.goto(`${server.url}/login?token=${server.token}`);

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const print = (name, milliseconds) => console.log(`${name}: ${milliseconds.map((one) => one.toFixed(0)).join(", ")} ms`);

/** The longest times between two frames in each of some seconds, while a step is done in each frame. */
async function frames(step) {
  return page.evaluate(async (step) => {
    const turn = new Function("frame", step);
    const all = [];
    for (let second = 0; second < 5; second++) {
      let [longest, last] = [0, performance.now()];
      for (let frame = 0; frame < 60; frame++) {
        turn(second * 60 + frame);
        await new Promise(requestAnimationFrame);
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }
      all.push(longest);
    }
    return all;
  }, step);
}

const paints = { overview: [], sql: [] };
for (const [name, place] of [["overview", "#/"], ["sql", "#/sql"]]) {
  for (let time = 0; time < TIMES; time++) {
    await page.goto("about:blank");
    await page.goto(`${server.url}/console/${place}`);
    const paint = await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    paints[name].push(await paint.jsonValue());
  }
  print(`first paint, ${name}`, [median(paints[name])]);
}

await page.goto(`${server.url}/console/#/?filter=many_`);
await page.getByText(/200 of \d+/).waitFor({ timeout: 60_000 });
print("longest frames, 200 views scrolled", await frames("document.querySelector('.scroller').scrollTop += 30"));

const opened = [];
for (let time = 0; time < 5; time++) {
  await page.goto(`${server.url}/console/#/`);
  await page.locator("tbody a").first().waitFor();
  const began = performance.now();
  await page.goto(`${server.url}/console/#/view/large`);
  await page.locator(".plan .box").first().waitFor({ timeout: 60_000 });
  opened.push(performance.now() - began);
}
print("until 2,003 operators are drawn", [median(opened)]);
print("longest frames, operators scrolled", await frames("document.querySelector('.graph').scrollTop += 40"));
print("longest frames, operators zoomed", await frames("document.querySelector(`[aria-label=${frame % 30 < 15 ? 'Smaller' : 'Larger'}]`).click()"));
await page.getByRole("button", { name: "All of it" }).click();
print("longest frames, all operators seen", await frames(""));

await browser.close();
await server.stop();
