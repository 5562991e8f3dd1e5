"""A database on a server: how it is reached, and what differs from one of this process."""

import ast
import asyncio
import datetime as dt
import decimal
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import polars
import pytest
import test_guide
from serving import PROGRAM, Server

import alluvium
from alluvium import dbapi

pytestmark = pytest.mark.skipif(not PROGRAM, reason="ALLUVIUM_SERVER is not the path of the program that serves")

Until = Callable[[Callable[[], object]], None]

# A statement that takes long, by what it computes.
LONG = "SELECT count(*) AS n FROM range(100000) a(x), range(100000) b(y) WHERE x % 7 = y % 11"
# A statement that has many rows.
MANY = "SELECT range AS x, repeat('x', 1000) AS t FROM range(3000000)"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that tests leave as they found it."""
    with Server() as started:
        yield started


@pytest.fixture
def db(server: Server) -> Iterator[alluvium.Database]:
    with alluvium.connect(server.url) as database:
        yield database


@pytest.fixture
def table(db: alluvium.Database) -> Iterator[str]:
    """A table of a key and a text."""
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
    yield "t"
    db.sql("DROP TABLE t CASCADE")


# Where the server is, and who one is.


def test_a_server_is_reached_by_its_address_and_by_its_socket(server: Server) -> None:
    for url in (server.url, server.url.replace("alluvium@", ""), server.socket, f"postgresql:///alluvium?host={server.socket}"):
        with alluvium.connect(url, user="alluvium") as db:
            assert db.sql("SELECT 1 AS a").fetchall() == [(1,)]
            assert (db.path, db.is_remote, repr(db)) == (None, True, "<alluvium.Database on a server>")
        assert repr(db) == "<alluvium.Database on a server, closed>"


@pytest.mark.parametrize("url", ["", "shop", "http://a:secret@b", "postgresql://a:secret@b:port", "postgresql://a:secret@b?what=ever"])
def test_a_wrong_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(alluvium.InterfaceError) as raised:
        alluvium.connect(url)
    assert "secret" not in str(raised.value)


def test_who_cannot_be_reached_is_an_error() -> None:
    with Server() as server:
        url = server.url
    with pytest.raises(alluvium.OperationalError) as raised:
        alluvium.connect(url)
    assert raised.value.sqlstate == "08006"


def test_a_role_logs_in_with_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with Server() as server:
        with alluvium.connect(server.url) as first:
            first.sql("CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'p''1'; CREATE ROLE ann LOGIN PASSWORD 's@2'; CREATE TABLE t (a BIGINT)")
            first.sql("CREATE TABLE mine (a BIGINT); GRANT SELECT, INSERT ON mine TO ann")
        address = f"127.0.0.1:{server.port}/"
        with alluvium.connect(f"postgresql://ann:s%402@{address}") as ann:
            assert ann.insert("mine", [(1,)]) == 1
            assert [relation.name for relation in ann.relations()] == ["mine"]
            with pytest.raises(alluvium.DeniedError) as raised:
                ann.sql("SELECT * FROM t")
            assert raised.value.sqlstate == "42501"
        with alluvium.connect(f"postgresql://{address}", user="boss", password="p'1") as boss:
            assert boss.sql("SELECT current_user AS u").fetchall() == [("boss",)]
        monkeypatch.setenv("PGPASSWORD", "s@2")
        with alluvium.connect(f"postgresql://ann@{address}") as ann:
            assert ann.sql("SELECT count(*) AS n FROM mine").fetchall() == [(1,)]
        with pytest.raises(alluvium.OperationalError) as refused:
            alluvium.connect(f"postgresql://ann@{address}", password="wrong")
        assert refused.value.sqlstate == "28P01" and "wrong" not in str(refused.value)


def certificate(folder: pathlib.Path) -> None:
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        + ["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")],
        capture_output=True,
        text=True,
    )
    if made.returncode != 0:
        pytest.skip(f"openssl makes no certificate: {made.stderr}")
    (folder / "key.pem").chmod(0o600)


def test_a_connection_is_encrypted_and_checks_the_certificate(tmp_path: pathlib.Path) -> None:
    certificate(tmp_path)
    files = [str(tmp_path / name) for name in ("certificate.pem", "key.pem")]
    with Server("--tls-certificate", files[0], "--tls-key", files[1]) as server:
        for host, mode, works in [
            ("localhost", f"verify-full&sslrootcert={files[0]}", True),
            ("127.0.0.1", f"verify-full&sslrootcert={files[0]}", False),
            ("127.0.0.1", f"verify-ca&sslrootcert={files[0]}", True),
            ("127.0.0.1", "require", True),
            ("127.0.0.1", "disable", True),
        ]:
            url = f"postgresql://alluvium@{host}:{server.port}/?sslmode={mode}"
            if works:
                with alluvium.connect(url) as db:
                    db.sql("CREATE TABLE IF NOT EXISTS t (a BIGINT)")
                    assert db.insert("t", [(1,)]) == 1
                    with db.subscribe("t") as changes:
                        assert next(changes).is_snapshot
            else:
                with pytest.raises(alluvium.OperationalError):
                    alluvium.connect(url)


# Statements and results.


def test_a_statement_that_fails_aborts_its_transaction(db: alluvium.Database, table: str) -> None:
    db.sql("BEGIN; INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(alluvium.DataError):
        db.sql("SELECT 1 / 0").fetchall()
    assert db.in_transaction
    with pytest.raises(alluvium.ProgrammingError) as raised:
        db.sql("SELECT 1")
    assert raised.value.sqlstate == "25P02"
    with pytest.raises(alluvium.OperationalError, match="has rolled back"):
        db.sql("COMMIT")
    assert not db.in_transaction
    db.sql("BEGIN; INSERT INTO t VALUES (2, 'b'); SAVEPOINT s")
    with pytest.raises(alluvium.IntegrityError):
        db.sql("INSERT INTO t VALUES (2, 'c')")
    db.sql("ROLLBACK TO s; COMMIT")
    assert db.sql("SELECT * FROM t").fetchall() == [(2, "b")]


def test_rows_wait_in_memory_for_the_next_statement_of_their_session(db: alluvium.Database) -> None:
    results = [db.sql(f"SELECT range + {number} AS x FROM range(50000)") for number in range(3)]
    for number, result in enumerate(results):
        assert result.fetchone() == (number,)
    assert [sum(row[0] for row in result) for result in results] == [sum(range(1, 50_000)) + number * 49_999 for number in range(3)]
    # So they do for one that fails meanwhile.
    failing = db.sql("SELECT 1000000 / (150000 - range) AS x FROM range(200000)")
    assert db.sql("SELECT 1 AS a").fetchall() == [(1,)]
    with pytest.raises(alluvium.DataError, match="division by zero"):
        failing.fetchall()


def test_a_result_is_pulled_and_may_be_dropped(db: alluvium.Database, table: str) -> None:
    begun = time.monotonic()
    for _ in range(3):
        many = db.sql(MANY)
        assert many.fetchone() == (0, "x" * 1_000)
        many.close()
        assert db.sql("SELECT 1 AS a").fetchone() == (1,)
    # Within a transaction it is read to its end, as its end would abort the transaction.
    db.sql("BEGIN; INSERT INTO t VALUES (1, 'a')")
    del many
    db.sql("SELECT range FROM range(100000)").fetchone()
    db.sql("COMMIT")
    assert db.sql("SELECT k FROM t").fetchall() == [(1,)]
    assert time.monotonic() - begun < 60


def test_a_frame_of_this_process_is_no_relation(db: alluvium.Database) -> None:
    frame = polars.DataFrame({"a": [1]})
    assert frame.height == 1
    with pytest.raises(alluvium.ProgrammingError, match='"frame" is one of this process, which a server cannot read: insert'):
        db.sql("SELECT * FROM frame")
    with pytest.raises(alluvium.ProgrammingError) as raised:
        db.sql("SELECT 1;\n  SELECT * FROM nowhere")
    assert (raised.value.line, raised.value.column) == (2, 17)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda db: db.sql("COPY t FROM STDIN"), "insert"),
        (lambda db: db.sql("COPY t TO STDOUT"), "query"),
        (lambda db: db.sql("SUBSCRIBE t"), "Database.subscribe"),
        (lambda db: db.transaction("key"), "Idempotency-Key"),
        (lambda db: db.committed("key"), "Idempotency-Key"),
        (lambda db: db.subscribe("t", epochs=5), "limits of its own"),
        (lambda db: db.subscribe("t", policy="resync"), "limits of its own"),
        (lambda db: db.wait_for_sources(), "process that has the engine"),
        (lambda db: db.finish(), "process that has the engine"),
        (lambda db: db.state(), "alluvium.arrangements"),
    ],
)
def test_what_is_not_there_says_so(db: alluvium.Database, table: str, act: Callable[[alluvium.Database], Any], said: str) -> None:
    with pytest.raises(alluvium.NotSupportedError, match=said):
        act(db)
    assert db.sql("SELECT count(*) AS n FROM t").fetchall() == [(0,)]


def test_epochs_are_those_of_the_server(db: alluvium.Database, table: str) -> None:
    first = db.sql("INSERT INTO t VALUES (1, 'a')").epoch
    assert first is not None and db.progress().committed == first and db.progress().complete is None
    with db.transaction() as transaction:
        transaction.insert("t", [(2, "b")])
    second = db.sql("UPDATE t SET v = 'c' WHERE k = 1").epoch
    assert second == first + 2 and repr(db.progress()) == f"<alluvium.Progress: committed {second}>"
    assert db.sql("BEGIN; DELETE FROM t").epoch is None
    assert db.sql("ROLLBACK").epoch is None


# Ends.


def test_ctrl_c_ends_a_statement_and_leaves_the_session(server: Server) -> None:
    program = """
        import os, signal, sys, threading
        import alluvium

        with alluvium.connect(sys.argv[1]) as db:
            for act in (lambda: db.sql(sys.argv[2]), lambda: next(db.subscribe("c", after=db.progress().committed))):
                timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
                timer.start()
                try:
                    act()
                except KeyboardInterrupt:
                    print("interrupted")
                timer.join()
                print(db.sql("SELECT 1 AS a").fetchall())
    """
    with alluvium.connect(server.url) as db:
        db.sql("CREATE TABLE c (a BIGINT); INSERT INTO c VALUES (1)")
        ran = python(program, server.url, LONG)
        db.sql("DROP TABLE c")
    assert ran.stdout.split("\n") == ["interrupted", "[(1,)]"] * 2 + [""], ran.stderr


def test_an_interrupt_within_a_transaction_is_known_at_its_commit(db: alluvium.Database, table: str) -> None:
    db.sql("BEGIN; INSERT INTO t VALUES (1, 'a')")
    threading.Timer(0.5, db.interrupt).start()
    with pytest.raises(alluvium.InterruptedError):
        db.sql(LONG)
    with pytest.raises(alluvium.OperationalError, match="has rolled back"):
        db.sql("COMMIT")
    assert db.sql("SELECT * FROM t").fetchall() == []


def python(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(alluvium.__file__).parents[1])}
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_a_forked_process_cannot_use_it_and_connects_itself(server: Server) -> None:
    program = """
        import os, sys
        import alluvium

        db = alluvium.connect(sys.argv[1])
        changes = db.subscribe("f")
        if os.fork() == 0:
            try:
                db.sql("SELECT 1")
            except alluvium.InterfaceError as error:
                print("forked" in str(error), flush=True)
            with alluvium.connect(sys.argv[1]) as own:
                print(own.sql("SELECT 1 AS a").fetchall(), flush=True)
            os._exit(0)
        os.wait()
        print(len(next(changes)), db.sql("SELECT 2 AS a").fetchall())
    """
    with alluvium.connect(server.url) as db:
        db.sql("CREATE TABLE f (a BIGINT); INSERT INTO f VALUES (1)")
        ran = python(program, server.url)
        db.sql("DROP TABLE f")
    assert ran.stdout.split("\n") == ["True", "[(1,)]", "1 [(2,)]", ""], ran.stderr


def test_threads_share_a_handle(db: alluvium.Database, table: str) -> None:
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT v, count(*) AS n FROM t GROUP BY v")
    view = db.view("w")
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(20):
                key = number * 1_000 + step
                db.insert("t", [(key, f"v{number}")])
                assert db.view("t").get(key) == (key, f"v{number}")
                assert view.get(f"v{number}") == (f"v{number}", step + 1)
                assert db.sql("SELECT v FROM t WHERE k = $1", key).fetchall() == [(f"v{number}",)]
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert db.sql("SELECT count(*) AS n FROM t").fetchall() == [(160,)]


def test_connections_that_are_not_needed_end(server: Server, db: alluvium.Database, table: str) -> None:
    def connected() -> int:
        """How many connections to the server are open."""
        lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
        return sum(line.split()[1].endswith(f":{server.port:04X}") and line.split()[3] == "01" for line in lines)

    before = connected()
    with alluvium.connect(server.url) as other:
        sessions = [other.session() for _ in range(3)]
        subscriptions = [other.subscribe("t") for _ in range(3)]
        assert connected() >= before + 7
        sessions[0].close()
        subscriptions[0].close()
    until_holds(lambda: connected() <= before + 1)


def until_holds(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_server_that_ends_is_an_error_and_not_a_wait() -> None:
    with Server() as server, alluvium.connect(server.url) as db:
        db.sql("CREATE TABLE t (a BIGINT)")
        server.stop()
        for act in (lambda: db.sql("SELECT 1"), lambda: db.insert("t", [(1,)]), lambda: db.session()):
            with pytest.raises(alluvium.OperationalError):
                act()


# Changes.


def test_a_subscription_survives_its_server(tmp_path: pathlib.Path) -> None:
    state = str(tmp_path / "state")
    with Server("--state", state) as server:
        port = server.port
        db = alluvium.connect(server.url)
        db.sql("CREATE TABLE t (a BIGINT)")
        db.insert("t", [(1,)])
        changes = db.subscribe("t")
        assert list(next(changes)) == [((1,), 1)]
        server.stop()
    with Server("--state", state, port=port) as server, alluvium.connect(server.url) as again:
        again.insert("t", [(2,)])
        change = changes.next(timeout=30)
        assert change is not None and not change.is_snapshot and list(change) == [((2,), 1)]
    changes.close()
    db.close()


def test_a_subscription_goes_on_after_an_epoch_and_says_when_that_is_gone(server: Server, db: alluvium.Database, table: str) -> None:
    db.insert("t", [(1, "a")])
    epoch = db.progress().committed
    db.insert("t", [(2, "b")])
    with db.subscribe("t", after=epoch) as changes:
        assert list(next(changes)) == [((2, "b"), 1)]
    with pytest.raises(alluvium.GoneError):
        db.subscribe("t", after=10**9)


def test_async_for_waits_without_a_thread(db: alluvium.Database, table: str) -> None:
    async def main() -> list[Any]:
        seen: list[Any] = []
        with db.subscribe("t") as changes:
            async for change in changes:
                seen.extend(change)
                if len(seen) == 3:
                    return seen
                await asyncio.to_thread(db.insert, "t", [(len(seen), "x")])
        return seen

    assert asyncio.run(asyncio.wait_for(main(), 30)) == [((number, "x"), 1) for number in range(3)]


def test_sources_sinks_and_live_views_work_here(db: alluvium.Database, table: str) -> None:
    seen: list[Any] = []
    with db.sink("t", seen.extend) as sink:
        source = db.source("t", [[(1, "a"), (2, "b")], [(3, "c")]])
        source.wait()
        assert (source.batches, source.rows) == (2, 3)
        sink.wait_for(db.progress().committed, timeout=30)
    assert sorted(row for row, _ in seen) == [(1, "a"), (2, "b"), (3, "c")]
    live = db.live("t")
    assert live.refresh(timeout=30).rows == [(1, "a"), (2, "b"), (3, "c")]
    db.sql("DELETE FROM t WHERE k = 2")
    assert live.refresh(timeout=30).rows == [(1, "a"), (3, "c")]
    live.stop()
    keyed = db.source("t", [[(9, "z")]], key="k")
    with pytest.raises(alluvium.NotSupportedError):
        keyed.wait()


# PEP 249.


def test_the_interface_of_pep_249_connects(server: Server, table: str) -> None:
    with dbapi.connect(server.url) as connection:
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO t VALUES (?, ?)", ((number, f"v{number}") for number in range(1_000)))
        assert cursor.rowcount == 1_000
        with pytest.raises(dbapi.IntegrityError, match="row 2: "):
            cursor.executemany("INSERT INTO t VALUES (?, ?)", [(2_000, None), (2_001, "x"), (1, "twice"), (2_002, "x")])
        assert cursor.execute("SELECT count(*) AS n, max(v) AS m FROM t WHERE k >= ?", [500]).fetchall() == [(500, "v999")]
        assert cursor.description is not None and cursor.description[0][:2] == ("n", "BIGINT")
        connection.rollback()
        assert cursor.execute("SELECT count(*) AS n FROM t").fetchone() == (0,)
    assert connection.database.is_closed
    with alluvium.connect(server.url) as db, dbapi.connect(db) as one, dbapi.connect(db) as two:
        one.cursor().execute("INSERT INTO t VALUES (1, 'x')")
        assert two.cursor().execute("SELECT * FROM t").fetchall() == []
        one.commit()
        two.rollback()
        assert two.cursor().execute("SELECT * FROM t").fetchall() == [(1, "x")]
    with pytest.raises(alluvium.OperationalError):
        dbapi.connect("postgresql://127.0.0.1:1/", user="x")


def test_values_of_all_types_go_there_and_back(db: alluvium.Database) -> None:
    types = {
        **{"a": "TINYINT", "b": "UTINYINT", "c": "USMALLINT", "d": "UINTEGER", "e": "UBIGINT", "f": "DECIMAL(20, 0)", "g": "REAL", "h": "DATE", "i": "TIME"},
        **{"j": "TIMESTAMPTZ", "k": "BYTEA", "l": "BIGINT[]", "m": "STRUCT(a INTEGER, b VARCHAR[])", "n": "STRUCT(x DATE, y STRUCT(z TINYINT))[]"},
        **{"o": "MAP(VARCHAR, DECIMAL(10, 2))", "p": "BIGINT[][]", "q": "BOOLEAN", "r": "SMALLINT", "s": "DOUBLE", "t": "VARCHAR", "u": "TIMESTAMP"},
    }
    day, instant = dt.date(2024, 2, 29), dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    row: tuple[Any, ...] = (-1, 255, 65_535, 2**32 - 1, 2**64 - 1, 7, 0.5, day, dt.time(1, 2, 3), instant, b"\0x", [1, None])
    # As a parameter it is a struct.
    mapped = {"k": decimal.Decimal("1.25"), "l": None}
    row = (*row, {"a": 1, "b": ["x", None]}, [{"x": day, "y": {"z": -1}}, None], mapped, [[1], [], None, [2, 3]])
    row = (*row, True, -5, 1e300, "text", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999))
    with alluvium.memory() as memory:
        for each in (memory, db):
            each.sql(f"CREATE TABLE w (id BIGINT PRIMARY KEY, {', '.join(f'{name} {kind}' for name, kind in types.items())})")
            each.insert("w", [(0, *row), (1, *[None] * len(row))])
            each.sql(f"INSERT INTO w VALUES (2, {', '.join(f'${place + 1}' for place in range(len(row)))})", *[None if value is mapped else value for value in row])
            each.upsert("w", [(1, *row), (3, *row)])
        for query in ("SELECT * FROM w ORDER BY id", "SELECT * FROM w WHERE false", *[f"SELECT $1 AS v, [$1] AS l, {{'x': $1}} AS s /* {value!r} */" for value in row]):
            values = [value for value in row if repr(value) in query] if "$1" in query else []
            results = [each.sql(query, *values[:1]) for each in (memory, db)]
            assert results[0].types == results[1].types
            tables = [result.arrow() for result in results]
            assert tables[0].schema.equals(tables[1].schema, check_metadata=True)
            assert tables[0].equals(tables[1])
        ways: list[Callable[[alluvium.Database], Any]] = [
            lambda each: each.view("w").get(2),
            lambda each: each.view("w").range().arrow().to_pylist(),
            lambda each: each.view("w").range().arrow().schema,
            lambda each: next(iter(each.subscribe("w"))).rows.arrow().sort_by("id").to_pylist(),
            lambda each: next(iter(each.subscribe("w"))).rows.arrow().schema.types,
        ]
        for way in ways:
            assert way(memory) == way(db)
    db.sql("DROP TABLE w")


def test_a_parameter_is_what_it_is_in_this_process(db: alluvium.Database) -> None:
    assert db.sql("SELECT $1 + 1 AS a", 1.5).fetchall() == [(2.5,)]
    assert db.sql("SELECT $1 + 1 AS a", decimal.Decimal("1.5")).fetchall() == [(decimal.Decimal("2.5"),)]
    for values in ([1], [1, 2, 3]):
        with pytest.raises(alluvium.ProgrammingError) as raised:
            db.sql("SELECT $1 + $2 AS a", *values)
        with alluvium.memory() as memory, pytest.raises(alluvium.ProgrammingError) as expected:
            memory.sql("SELECT $1 + $2 AS a", *values)
        assert str(raised.value) == str(expected.value)


# A connection that is lost.


def restarted(state: pathlib.Path, port: int) -> Server:
    return Server("--state", str(state), port=port)


def test_a_session_connects_again_and_says_what_is_lost(tmp_path: pathlib.Path) -> None:
    server = restarted(tmp_path, 0)
    db = alluvium.connect(server.url)
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR); INSERT INTO t VALUES (1, 'a')")
    sessions = {name: db.session() for name in ("idle", "set", "open")}
    view = db.view("t")
    assert sessions["idle"].sql("SELECT v FROM t").fetchall() == [("a",)] and view.get(1) == (1, "a")
    sessions["set"].sql("SET application_name = 'x'")
    sessions["open"].sql("BEGIN; INSERT INTO t VALUES (2, 'b')")
    server.stop()
    with pytest.raises(alluvium.OperationalError) as raised:
        sessions["idle"].sql("SELECT 1")
    assert raised.value.sqlstate == "08006"
    with restarted(tmp_path, server.port):
        assert sessions["idle"].sql("SELECT v FROM t").fetchall() == [("a",)]
        assert view.get(1) == (1, "a")
        for name, lost in (("set", "settings"), ("open", "transaction")):
            with pytest.raises(alluvium.OperationalError, match=f"was lost.*{lost}.*next statement has a new session") as raised:
                sessions[name].sql("SELECT 1")
            assert raised.value.sqlstate == "08006" and not sessions[name].in_transaction
            assert sessions[name].sql("SELECT v FROM t").fetchall() == [("a",)]
        assert db.insert("t", [(3, "c")]) == 1
        with dbapi.connect(db) as connection:
            assert connection.cursor().execute("SELECT count(*) AS n FROM t").fetchall() == [(2,)]
        db.close()


def test_many_rows_are_changed_together(db: alluvium.Database, table: str) -> None:
    count = 2_500
    db.upsert("t", [(number, "a") for number in range(count)])
    db.upsert("t", [(number, "b") for number in range(count)])
    with dbapi.connect(db) as connection:
        cursor = connection.cursor()
        cursor.executemany("UPDATE t SET v = ? WHERE k = ?", [("c", number) for number in range(count)])
        assert cursor.rowcount == count
    assert db.sql("SELECT v, count(*) AS n FROM t GROUP BY v").fetchall() == [("c", count)]
    for rows in ([(count, "x")], [(count, "x"), (count + 1, "x")]):
        connection = dbapi.connect(db)
        with pytest.raises(dbapi.ProgrammingError, match="return no rows"):
            connection.cursor().executemany("INSERT INTO t VALUES (?, ?) RETURNING k", rows)
        connection.rollback()
    assert db.sql("SELECT count(*) AS n FROM t").fetchall() == [(count,)]


def test_the_section_of_the_guide_runs(db: alluvium.Database, server: Server) -> None:
    page = (test_guide.ROOT / "docs/guide/python.md").read_text()
    (code,) = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert "postgresql://alluvium@127.0.0.1:5432/" in code
    code = code.replace("postgresql://alluvium@127.0.0.1:5432/", server.url)
    checks = test_guide.Checks(code)
    tree = ast.fix_missing_locations(checks.visit(ast.parse(code)))
    exec(compile(tree, "python.md", "exec"), {"alluvium": alluvium, "polars": polars, "_check": test_guide.check})
    assert checks.count == code.count("# →") > 0
    db.sql("DROP TABLE bid CASCADE")
