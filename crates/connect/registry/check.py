#!/usr/bin/env python3
"""Messages of Avro beside Confluent's own client, with a real broker of Kafka and a real registry of schemas.

    crates/connect/registry/check.py PROGRAM

Rows that the client writes, by schemas that change, become a table; views of it are written as Avro, and the client
reads what was written. The program is ended and started again in between.
"""

import datetime
import decimal
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

ROOT = Path(__file__).resolve().parents[3]

KEY = '{"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}'

COLUMNS = """
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"]},
    {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}]},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "local-timestamp-micros"}]},
    {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
    {"name": "ok", "type": ["null", "boolean"]},
    {"name": "ratio", "type": ["null", "double"]},
    {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
    {"name": "data", "type": ["null", "bytes"]}
"""

# A member that is no column, and one that is.
MORE = '{"name": "other", "type": {"type": "map", "values": "long"}, "default": {}}, {"name": "note", "type": ["null", "string"], "default": null}'

SCHEMAS = [
    f'{{"type": "record", "name": "Row", "fields": [{COLUMNS}]}}',
    f'{{"type": "record", "name": "Row", "fields": [{MORE}, {COLUMNS}]}}',
]

PROGRAM = """
CREATE TABLE t (
    id BIGINT PRIMARY KEY, name TEXT, price DECIMAL(20, 2), at TIMESTAMP, day DATE, ok BOOLEAN, ratio DOUBLE,
    tags TEXT[], data BYTEA, note TEXT
) WITH (connector = 'kafka', topic = 'rows', 'bootstrap.servers' = '{broker}', format = 'avro', 'format.registry_urls' = '{registry}');
CREATE VIEW upserts WITH ({to}, topic = 'upserts', 'format.update_format' = 'upsert', 'format.key_columns' = '["id"]') AS SELECT * FROM t;
CREATE VIEW changes WITH ({to}, topic = 'changes') AS SELECT * FROM t;
CREATE VIEW debezium WITH ({to}, topic = 'debezium', 'format.update_format' = 'debezium', 'format.key_columns' = '["id"]') AS SELECT * FROM t;
START;
"""

TO = "connector = 'kafka', 'bootstrap.servers' = '{broker}', format = 'avro', 'format.registry_urls' = '{registry}'"


class Server:
    """A server that one of our scripts runs."""

    def __init__(self, name: str, folder: Path) -> None:
        self.script = subprocess.Popen(
            [ROOT / ".ci" / "servers" / name, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.address = self.script.stdout.readline().split()[0]

    def stop(self) -> None:
        self.script.stdin.close()
        self.script.wait()


def some_row(chance: random.Random, key: int, number: int) -> dict:
    """A row, of which any value but the key may be none."""
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=chance.randint(-9_999, 29_999))
    at = datetime.datetime(2026, 1, 1) + datetime.timedelta(microseconds=chance.randint(-(10**15), 10**15))
    values = {
        "name": chance.choice(["", "ann", "Bj\u00f6rn \U0001f600", "x" * 1_000]),
        "price": decimal.Decimal(chance.randint(-(10**20) + 1, 10**20 - 1)).scaleb(-2),
        "at": at,
        "day": day,
        "ok": chance.random() < 0.5,
        "ratio": chance.uniform(-1e300, 1e300),
        "tags": [chance.choice("abc") for _ in range(chance.randint(0, 3))],
        "data": chance.randbytes(chance.randint(0, 20)),
        "note": f"n{number}",
    }
    return {"id": key} | {name: None if chance.random() < 0.2 else value for name, value in values.items()}


class Check:
    def __init__(self, broker: str, registry: str) -> None:
        self.broker = broker
        self.client = SchemaRegistryClient({"url": registry})
        self.chance = random.Random(5)
        self.rows: dict[int, dict] = {}

    def write(self, count: int) -> None:
        """Writes random rows and tombstones."""
        producer = Producer({"bootstrap.servers": self.broker, "partitioner": "murmur2_random"})
        keys = AvroSerializer(self.client, KEY)
        values = [AvroSerializer(self.client, schema) for schema in SCHEMAS]
        of_key, of_value = (SerializationContext("rows", field) for field in (MessageField.KEY, MessageField.VALUE))
        for number in range(count):
            key = self.chance.randrange(50)
            value = None
            if self.chance.random() < 0.2:
                self.rows.pop(key, None)
            else:
                row, version = some_row(self.chance, key, number), self.chance.randrange(2)
                if version == 0:
                    row["note"] = None
                self.rows[key] = row
                value = values[version](row | {"other": {"a": 1}}, of_value)
            producer.produce("rows", key=keys({"id": key}, of_key), value=value)
        producer.flush()

    def messages(self, topic: str) -> list[tuple[dict | None, dict | None]]:
        """The keys and values of all messages of a topic that are committed."""
        consumer = Consumer(
            {"bootstrap.servers": self.broker, "group.id": "check", "enable.partition.eof": True, "isolation.level": "read_committed"}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        read, found = AvroDeserializer(self.client), []
        while (message := consumer.poll(10)) is not None and not message.error():
            parts = []
            for part, field in ((message.key(), MessageField.KEY), (message.value(), MessageField.VALUE)):
                parts.append(None if part is None else read(part, SerializationContext(topic, field)))
            found.append(tuple(parts))
        consumer.close()
        return found

    def of_upserts(self) -> dict[int, dict]:
        rows = {}
        for key, value in self.messages("upserts"):
            if value is None:
                rows.pop(key["id"], None)
            else:
                rows[key["id"]] = value
        return rows

    def of_changes(self) -> dict[int, dict]:
        copies: dict[str, tuple[int, dict]] = {}
        for _, change in self.messages("changes"):
            weight, row = change.pop("weight"), change
            row.pop("epoch")
            count, _ = copies.get(repr(row), (0, row))
            copies[repr(row)] = (count + weight, row)
        return {row["id"]: row for count, row in copies.values() if count}

    def of_debezium(self) -> dict[int, dict]:
        rows = {}
        for key, change in self.messages("debezium"):
            if change is None:
                continue
            assert rows.get(key["id"]) == change["before"], "the row before is another one"
            if change["op"] == "d":
                del rows[key["id"]]
            else:
                rows[key["id"]] = change["after"]
        return rows

    def wait(self) -> None:
        """Waits until all topics have the rows."""
        for name in ("of_upserts", "of_changes", "of_debezium"):
            begun = time.monotonic()
            while (found := getattr(self, name)()) != self.rows:
                if time.monotonic() - begun > 60:
                    wrong = [key for key in self.rows.keys() | found.keys() if self.rows.get(key) != found.get(key)]
                    sys.exit(f"{name}: {found.get(wrong[0])} instead of {self.rows.get(wrong[0])}, and {len(wrong)} wrong in all")
                time.sleep(0.2)


def main() -> None:
    program, folder = sys.argv[1], Path(tempfile.mkdtemp(prefix="registry"))
    kafka, apicurio = Server("kafka", folder / "kafka"), Server("registry", folder / "registry")
    try:
        registry = f"http://{apicurio.address}/apis/ccompat/v7"
        admin = AdminClient({"bootstrap.servers": kafka.address})
        topics = [NewTopic("rows", 3)] + [NewTopic(name, 1) for name in ("upserts", "changes", "debezium")]
        for made in admin.create_topics(topics).values():
            made.result()
        check = Check(kafka.address, registry)
        given = {"broker": kafka.address, "registry": registry}
        file = folder / "program.sql"
        file.write_text(PROGRAM.format(to=TO.format(**given), **given))
        for _ in range(3):
            check.write(500)
            serve = [program, "serve", file, "--state", folder / "state", "--socket", folder, "--log", "warn"]
            server = subprocess.Popen(serve, stdout=subprocess.DEVNULL)
            try:
                check.wait()
                check.write(200)
                check.wait()
                print(f"{len(check.rows)} rows as they should be", flush=True)
            finally:
                server.terminate()
                server.wait(30)
    finally:
        apicurio.stop()
        kafka.stop()
        shutil.rmtree(folder)


main()
