"""Signals, forks, second processes, crashes, and the end of the interpreter."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

import alluvium

PACKAGE = pathlib.Path(alluvium.__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONUNBUFFERED": "1"}
PRELUDE = """
import os, signal, sys, threading, time
import alluvium

def interrupted(act):
    # Ctrl-C once `act` has run for a moment.
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        act()
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        timer.join()
"""


def started(code: str, *arguments: str) -> subprocess.Popen[str]:
    source = PRELUDE + textwrap.dedent(code)
    command = [sys.executable, "-c", source, *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ran(code: str, *arguments: str) -> list[str]:
    """What a program prints; it ends well and in time, and reports nothing."""
    process = started(code, *arguments)
    try:
        output, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        pytest.fail(f"the program hangs; it has printed {output!r} and reported {errors!r}")
    assert (process.returncode, errors) == (0, "")
    return output.splitlines()


@pytest.mark.parametrize(
    "act",
    [
        "db.sql('SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11').fetchall()",
        "db.sql('INSERT INTO t SELECT a.range FROM range(1000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11')",
        "db.sql('SELECT a.range + b.range AS s FROM range(1000000) a, range(1000000) b').arrow()",
        "next(quiet)",
        "quiet.next(timeout=1000)",
        "list(quiet)",
        "db.insert('t', slow())",
        "db.sql('SELECT count(slow_function(a)) FROM t').fetchall()",
        "db.sql('INSERT INTO t SELECT slow_function(a) FROM t')",
        "db.source('t', slow()).wait()",
        "db.sink('t', lambda change: None).wait_for(1_000_000)",
        "[row for row in db.sql('SELECT a.range FROM range(1000000) a, range(1000000) b')]",
    ],
    ids=lambda act: act.split("(")[0] + "/" + act.split("(")[1][:20],
)
def test_ctrl_c_ends_what_runs_and_the_database_works_on(act: str) -> None:
    output = ran(
        f"""
        @alluvium.function
        def slow_function(x: int) -> int:
            time.sleep(0.01)
            return x

        def slow():
            while True:
                yield [(7,)]
                time.sleep(0.01)

        db = alluvium.memory(workers=2, functions=[slow_function])
        db.sql("CREATE TABLE t (a BIGINT)")
        db.insert("t", {{"a": list(range(10_000))}})
        quiet = db.subscribe("t")
        assert len(next(quiet)) == 10_000
        before = db.sql("SELECT count(*) FROM t").fetchone()
        interrupted(lambda: {act})
        if "source" not in {act!r}:
            assert db.sql("SELECT count(*) FROM t").fetchone() == before
        db.insert("t", [(-1,)])
        print(db.sql("SELECT count(*) FROM t WHERE a = -1").fetchall())
        """
    )
    assert output == ["interrupted", "[(1,)]"]


def test_a_handler_of_another_signal_runs_while_a_query_runs() -> None:
    output = ran(
        """
        def stop(number, frame):
            raise TimeoutError("enough")

        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        db = alluvium.memory()
        try:
            db.sql("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11").fetchall()
        except TimeoutError as error:
            print(error)
        print(db.sql("SELECT 1").fetchall())
        """
    )
    assert output == ["enough", "[(1,)]"]


def test_interrupt_ends_the_calls_of_all_threads() -> None:
    output = ran(
        """
        db = alluvium.memory()
        db.sql("CREATE TABLE t (a BIGINT)")
        changes = db.subscribe("t")
        next(changes)
        ended = []

        def run(act):
            try:
                act()
            except alluvium.InterruptedError:
                ended.append(1)

        acts = [
            lambda: next(changes),
            lambda: db.session().sql("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11").fetchall(),
        ]
        threads = [threading.Thread(target=run, args=(act,)) for act in acts]
        [thread.start() for thread in threads]
        while len(ended) < 2:
            db.interrupt()
            time.sleep(0.05)
        [thread.join() for thread in threads]
        print(db.sql("SELECT 1").fetchall())
        """
    )
    assert output == ["[(1,)]"]


USES = [
    "db.sql('SELECT 1')",
    "db.insert('t', [(1,)])",
    "db.subscribe('t')",
    "db.view('t')",
    "db.session()",
    "db.transaction()",
    "db.progress()",
    "db.relations()",
    "result.fetchall()",
    "changes.next(timeout=0)",
    "session.sql('SELECT 1')",
    "view.prefix()",
    "begun.commit()",
]


@pytest.mark.parametrize("start", ["os.fork", "multiprocessing"])
def test_a_forked_process_cannot_use_the_database_of_its_parent(start: str) -> None:
    output = ran(
        f"""
        import multiprocessing, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        db = alluvium.memory(workers=2)
        db.sql("CREATE TABLE t (a BIGINT PRIMARY KEY); INSERT INTO t VALUES (7)")
        result, changes, session = db.sql("SELECT * FROM t"), db.subscribe("t"), db.session()
        view, begun = db.view("t"), db.transaction()

        def child():
            for use in {USES!r}:
                try:
                    eval(use)
                except alluvium.InterfaceError as error:
                    assert "forked" in str(error), error
                else:
                    raise AssertionError(use)
            with alluvium.memory() as own:
                assert own.sql("SELECT 1").fetchall() == [(1,)]
            db.close()

        if {start!r} == "os.fork":
            number = os.fork()
            if number == 0:
                child()
                sys.exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]))
        else:
            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
            process.join()
            print(process.exitcode)
        begun.insert("t", [(8,)])
        begun.commit()
        print(result.fetchall(), view.get(8), session.sql("SELECT count(*) FROM t").fetchall(), len(next(changes)))
        """
    )
    assert output == ["0", "[(7,)] (8,) [(2,)] 1"]


def test_a_state_directory_is_used_by_one_process(tmp_path: pathlib.Path) -> None:
    first = started(
        """
        db = alluvium.open(sys.argv[1])
        print("open")
        sys.stdin.read()
        """.replace("sys.stdin.read()", "time.sleep(50)"),
        str(tmp_path / "state"),
    )
    try:
        assert first.stdout is not None and first.stdout.readline() == "open\n"
        with pytest.raises(alluvium.StateError, match=str(first.pid)):
            alluvium.open(tmp_path / "state")
    finally:
        first.kill()
        first.communicate()
    with alluvium.open(tmp_path / "state") as db:
        assert db.sql("SELECT 1").fetchall() == [(1,)]


def test_a_state_directory_is_opened_once_in_a_process(tmp_path: pathlib.Path) -> None:
    with alluvium.open(tmp_path / "state"), pytest.raises(alluvium.StateError):
        alluvium.open(tmp_path / "state")


def test_a_killed_process_loses_nothing_that_it_has_committed(tmp_path: pathlib.Path) -> None:
    process = started(
        """
        db = alluvium.open(sys.argv[1], workers=2)
        db.sql("CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS s FROM t")
        number = 0
        while True:
            db.insert("t", {"a": range(number, number + 100)})
            number += 100
            print(number)
        """,
        str(tmp_path / "state"),
    )
    assert process.stdout is not None
    try:
        for _ in range(20):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert errors == ""
    printed = [int(line) for line in output.split("\n")[:-1] if line]
    reported = printed[-1] if printed else 2_000
    with alluvium.open(tmp_path / "state") as db:
        held = sorted(row[0] for row in db.sql("SELECT a FROM t").fetchall())
        assert held == list(range(len(held)))
        assert len(held) in (reported, reported + 100)
        assert db.sql("SELECT n, s FROM v").fetchall() == [(len(held), sum(held))]


@pytest.mark.parametrize(
    "what",
    [
        "pass",
        "result = db.sql('SELECT a FROM t'); result.fetchone()",
        "reader = db.sql('SELECT a FROM t').reader(); reader.read_next_batch()",
        "changes = db.subscribe('t'); next(changes)",
        "threading.Thread(target=lambda: list(db.subscribe('t')), daemon=True).start()",
        "threading.Thread(target=lambda: [db.sql('SELECT count(*) FROM t').fetchall() for _ in iter(int, 1)], daemon=True).start(); time.sleep(0.1)",
        "threading.Thread(target=lambda: [db.insert('t', [(1,)]) for _ in iter(int, 1)], daemon=True).start(); time.sleep(0.1)",
        "source = db.source('t', ([(n,)] for n in iter(int, 1)))",
        "sink = db.sink('t', lambda change: time.sleep(0.05))",
        "sink = db.sink('t', lambda change: sys.exit(3)); time.sleep(0.1)",
        "live = db.live('t'); live.refresh()",
        "db.transaction().insert('t', [(1,)])",
        "begun = db.transaction(); begun.insert('t', [(1,)])",
        "db.sql('BEGIN'); db.sql('INSERT INTO t VALUES (1)')",
        "session = db.session(); session.sql('DECLARE c CURSOR WITH HOLD FOR SELECT a FROM t')",
        "db.cycle = db if hasattr(db, '__dict__') else None",
        "view = db.view('t'); rows = view.range(); rows.fetchone()",
        "import builtins; builtins.kept = db, db.sql('SELECT a FROM t'), db.subscribe('t')",
        "del db",
        "db.close(); db.close()",
    ],
    ids=lambda what: what[:40],
)
def test_the_interpreter_ends_at_once_whatever_is_open(what: str) -> None:
    output = ran(
        f"""
        @alluvium.function
        def twice(x: int) -> int:
            return 2 * x

        db = alluvium.memory(workers=2, functions=[twice])
        db.sql("CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT twice(a) AS b FROM t")
        db.insert("t", {{"a": list(range(20_000))}})
        {what}
        print("end")
        """
    )
    assert output == ["end"]


def test_ten_thousand_statements_leak_nothing() -> None:
    output = ran(
        """
        import resource
        db = alluvium.memory()
        db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
        db.insert("t", [(number, "x" * 100) for number in range(100)])
        view = db.view("t")

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * resource.getpagesize()

        def statements(count):
            import pyarrow
            frame = pyarrow.table({"k": list(range(100)), "v": ["y" * 100] * 100})
            for number in range(count // 5):
                db.sql("SELECT * FROM t WHERE k = $1", number % 100).fetchall()
                db.sql("SELECT count(*) FROM frame").arrow()
                db.upsert("t", frame)
                assert view.get(5) is not None
                try:
                    db.sql(f"SELECT nothing{number} FROM t")
                except alluvium.ProgrammingError:
                    pass

        statements(2_000)
        before = resident()
        statements(10_000)
        print(resident() - before < 50 << 20)
        """
    )
    assert output == ["True"]


def test_threads_share_a_handle() -> None:
    output = ran(
        """
        db = alluvium.memory(workers=2)
        db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(v) AS s FROM t")
        view, failed = db.view("t"), []

        def work(number):
            try:
                for step in range(40):
                    key = number * 1_000 + step
                    db.insert("t", [(key, step)])
                    assert view.get(key) == (key, step)
                    assert db.sql("SELECT v FROM t WHERE k = $1", key).fetchall() == [(step,)]
                    (n, s), = db.sql("SELECT n, s FROM v").fetchall()
                    assert n > step
            except BaseException as error:
                failed.append(repr(error))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(failed, db.sql("SELECT n, s FROM v").fetchall())
        """
    )
    assert output == [f"[] [(320, {8 * sum(range(40))})]"]


def test_closing_ends_the_calls_of_other_threads(until: Callable[[Callable[[], object]], None]) -> None:
    output = ran(
        """
        db = alluvium.memory()
        db.sql("CREATE TABLE t (a BIGINT)")
        changes = db.subscribe("t")
        next(changes)
        ended = []

        def run(act):
            try:
                ended.append(act())
            except alluvium.Error as error:
                ended.append(type(error).__name__)

        acts = [
            lambda: list(changes),
            lambda: db.sql("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11").fetchall(),
        ]
        threads = [threading.Thread(target=run, args=(act,)) for act in acts]
        [thread.start() for thread in threads]
        time.sleep(0.1)
        db.close()
        [thread.join() for thread in threads]
        print(sorted(map(str, ended)))
        """
    )
    assert output == ["['InterfaceError', '[]']"]
