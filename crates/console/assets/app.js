// Shows the page that the address names: `#/`, `#/view/NAME`, `#/sql?q=TEXT`.

import { poll, rows, whenLink } from "./api.js";
import { problemBox, setText } from "./dom.js";
import { overview } from "./overview.js";
import { count } from "./text.js";

const PAGES = {
  "": async () => overview,
  view: async () => (await import("./view.js")).view,
  connectors: async () => (await import("./activity.js")).connectors,
  state: async () => (await import("./activity.js")).state,
  sessions: async () => (await import("./activity.js")).sessions,
  locks: async () => (await import("./activity.js")).locks,
  sql: async () => (await import("./sql.js")).sql,
};

const main = document.getElementById("main");
const link = document.getElementById("link");
let end = () => {};
let shown = null;
let turn = 0;

/** The address as a page, what it is of, and parameters. */
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [page, ...rest] = path.split("/");
  return { page, of: decodeURIComponent(rest.join("/")), parameters: new URLSearchParams(query ?? "") };
}

/** Keeps parameters in the address, without a step back to the old ones. */
function keep(parameters) {
  const { page } = address();
  const path = location.hash.split("?")[0] || "#/";
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") kept.set(name, value);
  }
  const query = kept.toString();
  if (page in PAGES) history.replaceState(null, "", query ? `${path}?${query}` : path);
}

async function show() {
  const { page, of, parameters } = address();
  const place = `${page}/${of}`;
  const number = ++turn;
  end();
  end = () => {};
  for (const other of document.querySelectorAll("#pages a")) {
    const isHere = other.getAttribute("href").replace(/^#\/?/, "") === page;
    if (isHere) {
      other.setAttribute("aria-current", "page");
      other.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else other.removeAttribute("aria-current");
  }
  main.replaceChildren();
  try {
    const open = await (PAGES[page] ?? PAGES[""])();
    if (number !== turn) return;
    document.title = "Alluvium";
    end = open(main, { of, parameters, keep }) ?? end;
  } catch (error) {
    main.append(problemBox(error));
  }
  if (shown !== null && shown !== place && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
  shown = place;
}

whenLink((answers) => {
  link.dataset.state = answers ? "there" : "lost";
  setText(link, answers ? "connected" : "The connection is lost. Trying again …");
});

poll(
  1_000,
  async () => {
    const [epochs] = await rows("SELECT committed FROM alluvium.epochs WHERE relation IS NULL");
    setText(link, epochs ? `epoch ${count(epochs.committed)}` : "connected");
  },
  () => setText(link, "connected"),
);
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", show);
show();
