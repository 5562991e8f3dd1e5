// Takes pictures of all pages, at two sizes and in both schemes, into a folder. The guide has some of them.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { launch } from "./pages.mjs";
import { serve } from "./server.mjs";

const folder = process.argv[2] ?? "pictures";
const PAGES = {
  overview: "#/",
  view: "#/view/delays_by_carrier_and_hour",
  nexmark: "#/view/q4?heat=bytes",
  table: "#/view/flights",
  connectors: "#/connectors",
  state: "#/state",
  sessions: "#/sessions",
  locks: "#/locks",
  sql: `#/sql?q=${encodeURIComponent("SELECT airline, departed, average_delay\nFROM delays_by_carrier\nORDER BY departed DESC")}&as=bar`,
  lines: `#/sql?q=${encodeURIComponent("SELECT day, scheduled, worst_delay FROM days")}&as=line`,
  rows: `#/sql?q=${encodeURIComponent("SELECT * FROM delays_by_weather")}`,
  number: `#/sql?q=${encodeURIComponent("SELECT SUM(departed) AS departed FROM delays_by_carrier")}&as=number`,
  error: `#/sql?q=${encodeURIComponent("SELECT day,\n       cost FROM days")}`,
};
const SIZES = { large: { width: 1280, height: 800 }, small: { width: 390, height: 844 } };

mkdirSync(folder, { recursive: true });
const server = await serve();
const browser = await launch();
const rest = server.load();
const writer = server.transaction("UPDATE airlines SET name = name WHERE carrier = 'AA'");
const waits = server.transaction("UPDATE airlines SET name = name WHERE carrier = 'AA'");
for (const colorScheme of ["light", "dark"]) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    const context = await browser.newContext({ viewport, colorScheme });
    const page = await context.newPage();
    await page.goto(`${server.url}/console/`);
    await page.screenshot({ path: join(folder, `login-${size}-${colorScheme}.png`) });
    await page.goto(`${server.url}/login?token=${server.token}`);
    for (const [name, place] of Object.entries(PAGES)) {
      await page.goto(`${server.url}/console/${place}`);
      await page.waitForTimeout(name === "overview" && size === "large" ? 20_000 : 4_000);
      await page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`) });
    }
    await context.close();
  }
}
await rest();
await Promise.all([writer.end(), waits.end()]);
await browser.close();
await server.stop();
