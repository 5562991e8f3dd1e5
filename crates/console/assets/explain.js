// The plan of a view: operators with their figures, and the state that they keep.

import { plan } from "./api.js";
import { bytes, nanoseconds, things } from "./text.js";

/** What EXPLAIN answers about a relation, by its name as SQL writes it. */
async function explained(what, name) {
  return JSON.parse(await plan(`EXPLAIN (${what} ${name}`));
}

/** The operators of a materialized view with what they have done, where they stand in a picture, and sentences about all of them. */
export async function analyzed(name) {
  const { nodes, places, sentences, busy_ns, workers } = await explained("ANALYZE, FORMAT json)", name);
  return { nodes, places, sentences, title: `${nanoseconds(busy_ns)} since it was made, on ${things(workers, "worker")}` };
}

/** What a view keeps and why, as lines with a `depth`, a `kind` and a `text`. */
export async function kept(name) {
  const { nodes, sentences } = await explained("FORMAT json) STATE", name);
  const line = (depth, kind, text) => ({ depth, kind, text });
  const ofState = (state) => [
    line(1, "kept", `${state.contents} in ${state.place}: ${things(state.rows, "row")}, ${bytes(state.memory_bytes)} in memory, ${bytes(state.file_bytes)} in files`),
    ...state.sentences.map((text) => line(2, text.startsWith("what helps") ? "what-helps" : "", text)),
  ];
  const ofNode = (node) => [
    line(0, "", node.clause ? `${node.operation} (${node.clause})` : node.operation),
    ...(node.states ?? []).flatMap(ofState),
  ];
  return [...sentences.map((text) => line(0, "", text)), ...nodes.filter((node) => node.states?.length).flatMap(ofNode)];
}
