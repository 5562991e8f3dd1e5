// The server: statements, and whether it answers.

/** The most rows of a result that are kept. */
export const MOST_ROWS = 10_000;

/** What the server says against a request. */
export class Problem extends Error {
  constructor(body, status) {
    super(body.detail ?? `the server answers ${status}`);
    this.status = status;
    this.sqlstate = body.sqlstate ?? null;
    this.position = body.position ?? null;
    this.hint = body.hint ?? null;
  }
}

/** The server does not answer. */
export class Lost extends Error {
  constructor() {
    super("the server does not answer");
  }
}

let answers = null;
const listeners = new Set();

/** Calls `listener` with whether the server answers, now if that is known and whenever it changes. */
export function whenLink(listener) {
  listeners.add(listener);
  if (answers !== null) listener(answers);
}

/** Notes whether the server answers. */
export function noteLink(does) {
  if (answers === does) return;
  answers = does;
  listeners.forEach((listener) => listener(does));
}

/** Begins a request of a statement. A login that has ended shows the page that says how to log in. */
async function ask(text, { parameters, signal } = {}) {
  let answer;
  try {
    answer = await fetch("/v1/sql", {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify({ sql: text, parameters: parameters ?? [] }),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    noteLink(false);
    throw new Lost();
  }
  noteLink(true);
  if (answer.status === 401) {
    location.reload();
    await new Promise(() => {});
  }
  if (!answer.ok) throw new Problem(await answer.json().catch(() => ({})), answer.status);
  return answer;
}

/** The rows of a statement of the console's own, as objects. */
export async function rows(text, parameters) {
  const answer = await ask(text, { parameters });
  const body = await answer.json().catch(() => {
    noteLink(false);
    throw new Lost();
  });
  if (body.error) throw new Problem(body.error, body.error.status);
  return body.rows ?? [];
}

/** The lines of a plan. */
export async function plan(text) {
  return (await rows(text)).map((row) => row.plan).join("\n");
}

/**
 * What a statement of the user answers: `columns` and `rows`, the first ones and `isCut` if there are more than are kept; or what it has
 * done. Numbers that a script cannot hold are texts.
 */
export async function result(text, signal) {
  const answer = await ask(text, { signal });
  const stop = new AbortController();
  signal?.addEventListener("abort", () => stop.abort());
  const [body, isCut] = await firstRows(answer.body.pipeThrough(new TextDecoderStream()).getReader());
  const value = JSON.parse(body, (_, value, context) =>
    typeof value === "number" && context && context.source !== String(value) ? context.source : value,
  );
  if (value.error) throw new Problem(value.error, Number(value.error.status));
  return { ...value, isCut };
}

/** Reads an answer until as many rows have come as are kept; closes what is open then. */
async function firstRows(reader) {
  let [body, depth, rows, inText, isEscaped] = ["", 0, 0, false, false];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return [body, false];
    for (let at = 0; at < value.length; at++) {
      const letter = value[at];
      if (isEscaped) isEscaped = false;
      else if (inText) [isEscaped, inText] = [letter === "\\", letter !== '"'];
      else if (letter === '"') inText = true;
      else if (letter === "{" || letter === "[") depth++;
      else if (letter === "}" || letter === "]") {
        depth--;
        // A column is as deep as a row, and there are less of them.
        if (letter === "}" && depth === 2 && ++rows > MOST_ROWS) {
          reader.cancel();
          return [`${body}${value.slice(0, at + 1)}]}`, true];
        }
      }
    }
    body += value;
  }
}

/**
 * Calls `read` again and again, each `milliseconds` while the page is seen, and `failed` with its problems; returns what ends that. While
 * the server does not answer, it is asked once a second. What takes long is read less often.
 */
export function poll(milliseconds, read, failed) {
  let [timer, isOver] = [null, false];
  const turn = async () => {
    timer = null;
    let wait = milliseconds;
    if (!document.hidden) {
      const began = performance.now();
      try {
        await read();
        wait = Math.max(wait, 4 * (performance.now() - began));
      } catch (error) {
        if (error instanceof Lost) wait = 1_000;
        else if (!isOver) failed(error);
      }
    }
    if (!isOver) timer = setTimeout(turn, wait);
  };
  const seen = () => {
    if (!document.hidden && timer !== null) {
      clearTimeout(timer);
      turn();
    }
  };
  document.addEventListener("visibilitychange", seen);
  turn();
  return () => {
    isOver = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}
