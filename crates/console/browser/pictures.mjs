// Takes pictures of all pages, at two sizes and in both schemes, into a folder. The guide has some of them.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { serve } from "./server.mjs";

const folder = process.argv[2] ?? "pictures";
const PAGES = {
  overview: "#/",
  view: "#/view/delays_by_carrier_and_hour",
  connectors: "#/connectors",
  sessions: "#/sessions",
  locks: "#/locks",
  sql: `#/sql?q=${encodeURIComponent("SELECT airline, departed, average_delay\nFROM delays_by_carrier\nORDER BY departed DESC")}&as=bar`,
  lines: `#/sql?q=${encodeURIComponent("SELECT day, scheduled, worst_delay FROM days")}&as=line`,
};
const SIZES = { large: { width: 1360, height: 850 }, small: { width: 420, height: 860 } };

mkdirSync(folder, { recursive: true });
const server = await serve();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
let isOver = false;
const load = (async () => {
  for (let from = 0; !isOver; from += 200) await server.insert(from);
})();
for (const colorScheme of ["light", "dark"]) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    const context = await browser.newContext({ viewport, colorScheme });
    const page = await context.newPage();
    await page.goto(`${server.url}/login?token=${server.token}`);
    for (const [name, place] of Object.entries(PAGES)) {
      await page.goto(`${server.url}/console/${place}`);
      await page.waitForTimeout(name === "overview" && size === "large" ? 20_000 : 4_000);
      await page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`) });
    }
    await context.close();
  }
}
isOver = true;
await load;
await browser.close();
await server.stop();
