const { Client } = require("pg");
const Cursor = require("pg-cursor");
const copy = require("pg-copy-streams");
const { pipeline } = require("node:stream/promises");
const { Readable } = require("node:stream");
const assert = require("node:assert");

const client = new Client({});
const report = (step, ok, detail = "") => console.log(JSON.stringify({ step, ok, detail: String(detail) }));

async function step(name, work) {
  try {
    report(name, true, (await work()) ?? "");
  } catch (error) {
    report(name, false, error.message);
  }
}

async function main() {
  await client.connect();
  report("connect", true, require("pg/package.json").version);
  await step("list", async () => {
    const { rows } = await client.query("SELECT table_name FROM information_schema.tables WHERE table_schema = $1", ["public"]);
    const names = rows.map((row) => row.table_name);
    assert(names.includes("sample") && names.includes("place"), String(names));
  });
  await step("reflect", async () => {
    const { fields } = await client.query("SELECT * FROM sample LIMIT 0");
    assert.deepStrictEqual(fields.slice(0, 3).map((field) => [field.name, field.dataTypeID]), [["id", 20], ["flag", 16], ["small", 21]]);
  });
  await step("read", async () => {
    const { rows } = await client.query("SELECT * FROM sample ORDER BY id");
    const [row, empty] = rows;
    assert.strictEqual(row.id, "1");
    assert.strictEqual(row.flag, true);
    assert.strictEqual(row.whole, 3);
    assert.strictEqual(row.amount, "12.34");
    assert.strictEqual(row.name, "Grüße");
    assert.deepStrictEqual([...row.bytes], [0, 255]);
    assert.strictEqual(row.instant.toISOString(), "2026-11-28T12:34:56.789Z");
    assert.deepStrictEqual(row.list, [1, 2, 3]);
    assert.strictEqual(empty.flag, null);
  });
  await step("write", async () => {
    await client.query("INSERT INTO sample (id, flag, single, name, bytes, instant, list) VALUES ($1, $2, $3, $4, $5, $6, $7)", [
      10, true, 1.5, "written", Buffer.from([1, 2]), new Date(0), [4, 5],
    ]);
    const { rows } = await client.query({ name: "by_key", text: "SELECT * FROM sample WHERE id = $1", values: [10] });
    assert.deepStrictEqual([rows[0].name, rows[0].instant.getTime(), rows[0].list], ["written", 0, [4, 5]]);
    await client.query("BEGIN");
    await client.query("INSERT INTO place VALUES ($1, $2)", [1, "gone"]);
    await client.query("ROLLBACK");
    const answer = await client.query("INSERT INTO place SELECT id, name FROM sample RETURNING id");
    assert.strictEqual(answer.rowCount, 3);
  });
  await step("copy", async () => {
    await pipeline(Readable.from(["100\ta\n", "101\tb\n"]), client.query(copy.from("COPY place FROM STDIN")));
    let out = "";
    for await (const part of client.query(copy.to("COPY (SELECT * FROM place WHERE id >= 100 ORDER BY id) TO STDOUT"))) out += part;
    assert.strictEqual(out, "100\ta\n101\tb\n");
  });
  await step("stream", async () => {
    const cursor = client.query(new Cursor("SELECT id FROM place"));
    assert.strictEqual((await cursor.read(2)).length, 2);
    assert.strictEqual((await cursor.read(100)).length, 3);
    await cursor.close();
  });
  await step("error", async () => {
    for (const [statement, code] of [["SELECT nothing", "42703"], ["SELECT 1 / 0", "22012"], ["INSERT INTO sample (id, name) VALUES (1, 'a')", "23505"]]) {
      const error = await client.query(statement).then(() => null, (error) => error);
      assert.strictEqual(error?.code, code, statement);
    }
  });
  await client.end();
}

main().catch((error) => {
  report("connect", false, error.message);
  process.exit(1);
});
