// The rows of a relation, as they change.

import { noteLink, rows } from "./api.js";

/** The rows of a relation above which they are not followed. */
export const MOST_FOLLOWED = 20_000;

/** How long a burst of changes is gathered before it is shown. */
const GATHER = 100;

/**
 * Follows a relation, by its name in `alluvium.relations`. Calls `changed` with all rows, the epoch, and the rows that are new, and `failed`
 * with the problem that the server names. Returns what ends that. After a lost connection it resumes.
 */
export function follow(name, changed, failed) {
  const held = new Map();
  let [source, timer, isOver, epoch, fresh] = [null, null, false, null, new Set()];
  const tell = () => {
    timer = null;
    const all = [];
    for (const { row, count } of held.values()) for (let copy = 0; copy < count; copy++) all.push(row);
    changed(all, epoch, fresh);
    fresh = new Set();
  };
  const apply = (event) => {
    const part = JSON.parse(event.data);
    if (part.snapshot && part.first) held.clear();
    part.rows.forEach((row, at) => {
      const key = JSON.stringify(row);
      const one = held.get(key) ?? { row, count: 0 };
      one.count += part.weights[at];
      if (one.count === 0) held.delete(key);
      else held.set(key, one);
      if (!part.snapshot && one.count > 0) fresh.add(one.row);
    });
    if (!part.last) return;
    epoch = part.epoch;
    timer ??= setTimeout(tell, GATHER);
  };
  const again = (wait) => setTimeout(() => !isOver && open(), wait);
  const open = () => {
    source = new EventSource(`/v1/relations/${encodeURIComponent(name)}/changes`);
    source.addEventListener("open", () => noteLink(true));
    source.addEventListener("snapshot", apply);
    source.addEventListener("change", apply);
    source.addEventListener("problem", (event) => {
      source.close();
      failed(new Error(JSON.parse(event.data).detail));
      again(2_000);
    });
    source.addEventListener("error", async () => {
      if (source.readyState !== EventSource.CLOSED || isOver) return;
      // It was refused, for example because what it would resume after is gone: ask why, and begin anew.
      try {
        await rows("SELECT name FROM alluvium.relations LIMIT 1");
        again(1_000);
      } catch {
        again(2_000);
      }
    });
  };
  open();
  return () => {
    isOver = true;
    source.close();
    clearTimeout(timer);
  };
}
