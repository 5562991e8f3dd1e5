"""Subscribers get a snapshot, then each change."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import alluvium

Until = Callable[[Callable[[], object]], None]


@pytest.fixture
def db(db: alluvium.Database) -> alluvium.Database:
    db.sql("""
        CREATE TABLE t (k BIGINT PRIMARY KEY, g VARCHAR, x BIGINT);
        CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n, sum(x) AS s FROM t GROUP BY g;
        CREATE VIEW p AS SELECT k FROM t WHERE x > 5;
        CREATE LOCAL VIEW l AS SELECT 1 AS one
    """)
    db.insert("t", [(1, "a", 1), (2, "a", 2), (3, "b", 10)])
    return db


def test_the_first_change_is_a_snapshot(db: alluvium.Database) -> None:
    with db.subscribe("v") as changes:
        assert (changes.columns, changes.types, changes.is_over) == (["g", "n", "s"], ["VARCHAR", "BIGINT", "BIGINT"], False)
        snapshot = next(changes)
        assert (snapshot.is_snapshot, snapshot.epoch, len(snapshot)) == (True, db.progress().committed, 2)
        assert sorted(snapshot) == [(("a", 2, 3), 1), (("b", 1, 10), 1)]
        assert list(snapshot) == list(zip(snapshot.rows, snapshot.weights))
        assert "snapshot of epoch" in repr(snapshot)


def test_a_change_has_what_leaves_and_what_enters(db: alluvium.Database) -> None:
    with db.subscribe("v") as changes:
        next(changes)
        db.insert("t", [(4, "a", 5)])
        change = next(changes)
        assert (change.is_snapshot, change.epoch) == (False, db.progress().committed)
        assert sorted(change) == [(("a", 2, 3), -1), (("a", 3, 8), 1)]


@pytest.mark.parametrize(("relation", "rows"), [("t", 3), ("v", 2), ("p", 1), ("public.t", 3)])
def test_tables_and_views_of_both_kinds_have_changes(db: alluvium.Database, relation: str, rows: int) -> None:
    with db.subscribe(relation) as changes:
        assert len(next(changes)) == rows
        db.insert("t", [(4, "c", 50)])
        assert {weight for _, weight in next(changes)} == {1}


@pytest.mark.engine("over a connection rows are deleted by key")
def test_weights_count_copies(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE n (a BIGINT)")
    with db.subscribe("n") as changes:
        assert len(next(changes)) == 0
        db.insert("n", [(1,), (1,), (2,), (1,)])
        assert sorted(next(changes)) == [((1,), 3), ((2,), 1)]
        db.delete("n", [(1,), (1,)])
        assert sorted(next(changes)) == [((1,), -2)]


def test_commits_that_change_nothing_here_are_no_changes(db: alluvium.Database) -> None:
    with db.subscribe("p") as changes:
        next(changes)
        db.insert("t", [(4, "c", 0)])
        db.insert("t", [(5, "c", 6)])
        assert list(next(changes)) == [((5,), 1)]
        assert changes.poll() is None


def test_a_subscription_goes_on_after_an_epoch(db: alluvium.Database) -> None:
    epoch = db.progress().committed
    db.insert("t", [(4, "a", 5)])
    db.sql("DELETE FROM t WHERE k = 1")
    with db.subscribe("v", after=epoch) as changes:
        assert sorted(next(changes)) == [(("a", 2, 3), -1), (("a", 3, 8), 1)]
        assert sorted(next(changes)) == [(("a", 2, 7), 1), (("a", 3, 8), -1)]
    with db.subscribe("v", after=db.progress().committed) as changes:
        assert changes.poll() is None


def test_epochs_that_are_not_kept_are_gone() -> None:
    with alluvium.memory() as db:
        db.sql("CREATE TABLE t (a BIGINT)")
        for number in range(5):
            db.insert("t", [(number,)])
        with pytest.raises(alluvium.GoneError, match="longer history"):
            db.subscribe("t", after=1)
        with pytest.raises(alluvium.GoneError, match="no epoch 99"):
            db.subscribe("t", after=99)


@pytest.mark.parametrize(
    ("relation", "options", "kind"),
    [
        ("nothing", {}, alluvium.ProgrammingError),
        ("l", {}, alluvium.ProgrammingError),
        ("t", {"policy": "wait"}, alluvium.InterfaceError),
        ("t", {"after": -1}, OverflowError),
        ("t", {"after": "x"}, TypeError),
    ],
)
def test_a_subscription_that_cannot_be_is_refused(db: alluvium.Database, relation: str, options: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        db.subscribe(relation, **options)


def test_a_timeout_ends_a_wait(db: alluvium.Database) -> None:
    with db.subscribe("t") as changes:
        next(changes)
        assert [changes.next(timeout=timeout) for timeout in (0, 0.01, -1)] == [None] * 3
        assert changes.poll() is None and not changes.is_over
        db.insert("t", [(4, "a", 1)])
        change = changes.next(timeout=30)
        assert change is not None and len(change) == 1


def fall_behind(db: alluvium.Database) -> None:
    for number in range(100, 110):
        db.insert("t", [(number, "z", number)])
        db.wait(db.progress().committed)


@pytest.mark.engine("the server says what happens to subscribers that fall behind")
def test_a_subscriber_who_is_behind_is_disconnected_if_it_wants(db: alluvium.Database) -> None:
    changes = db.subscribe("v", policy="disconnect", epochs=2)
    fall_behind(db)
    with pytest.raises(alluvium.BehindError):
        list(changes)
    assert changes.is_over


@pytest.mark.engine("the server says what happens to subscribers that fall behind")
def test_a_subscriber_who_is_behind_gets_a_snapshot_if_it_wants(db: alluvium.Database) -> None:
    with db.subscribe("v", policy="resync", epochs=2) as changes:
        next(changes)
        fall_behind(db)
        held: dict[Any, int] = {}
        while (change := changes.next(timeout=1)) is not None:
            if change.is_snapshot:
                held = {}
            for row, weight in change:
                held[row] = held.get(row, 0) + weight
        assert {row for row, weight in held.items() if weight} == set(db.sql("SELECT * FROM v").fetchall())


@pytest.mark.engine("the server says what happens to subscribers that fall behind")
def test_a_subscriber_who_is_behind_holds_up_commits_else(db: alluvium.Database, until: Until) -> None:
    changes = db.subscribe("t", epochs=2)
    thread = threading.Thread(target=fall_behind, args=(db,))
    thread.start()
    seen = 0
    while seen < 10 + 3:
        seen += len(next(changes))
    thread.join()
    assert seen == 13
    changes.close()


def test_a_drop_ends_it(db: alluvium.Database) -> None:
    changes = db.subscribe("v")
    next(changes)
    timer = threading.Timer(0.05, db.sql, ("DROP MATERIALIZED VIEW v",))
    timer.start()
    assert list(changes) == []
    assert changes.is_over and changes.next() is None and changes.poll() is None
    timer.join()


def test_a_closed_one_is_over(db: alluvium.Database) -> None:
    changes = db.subscribe("v")
    changes.close()
    changes.close()
    assert changes.is_over and list(changes) == []
    for act in (changes.next, changes.poll):
        with pytest.raises(alluvium.InterfaceError, match="closed"):
            act()


@pytest.mark.parametrize("what", ["subscription", "database"])
def test_another_thread_may_close_it(db: alluvium.Database, what: str) -> None:
    changes = db.subscribe("v")
    next(changes)
    taken: list[Any] = []
    reader = threading.Thread(target=lambda: taken.extend([list(changes)]), daemon=True)
    reader.start()
    closer = threading.Timer(0.05, changes.close if what == "subscription" else db.close)
    closer.daemon = True
    closer.start()
    closer.join(30)
    reader.join(30)
    assert taken == [[]] and changes.is_over


@pytest.mark.engine("changes come over a connection some time after they are committed")
def test_changes_add_up_to_the_view(db: alluvium.Database) -> None:
    held: dict[Any, int] = {}
    with db.subscribe("v") as changes:
        for step in range(30):
            db.upsert("t", [(step % 7, "abc"[step % 3], step)])
            if step % 4 == 0:
                db.delete("t", [{"k": step % 5}])
        db.wait(db.progress().committed)
        while (change := changes.poll()) is not None:
            for row, weight in change:
                held[row] = held.get(row, 0) + weight
    assert {row: 1 for row in db.sql("SELECT * FROM v").fetchall()} == {row: weight for row, weight in held.items() if weight}


def within(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main, 30))


def test_tasks_follow_changes(db: alluvium.Database) -> None:
    async def follow(seen: list[Any]) -> None:
        async for change in db.subscribe("t"):
            seen.extend(row for row, _ in change)

    async def main() -> list[Any]:
        seen: list[list[Any]] = [[], [], []]
        async with asyncio.TaskGroup() as tasks:
            for each in seen:
                tasks.create_task(follow(each))
            while not all(len(each) == 3 for each in seen):
                await asyncio.sleep(0.01)
            await asyncio.to_thread(db.insert, "t", [(4, "c", 0)])
            while not all(len(each) == 4 for each in seen):
                await asyncio.sleep(0.01)
            # The loop is free meanwhile, and the tasks end with the table.
            await asyncio.to_thread(db.sql, "DROP TABLE t CASCADE")
        return seen

    assert [sorted(each)[-1] for each in within(main())] == [(4, "c", 0)] * 3


def test_a_task_that_is_cancelled_loses_no_change(db: alluvium.Database) -> None:
    async def main() -> Any:
        changes = db.subscribe("t")
        await anext(changes)
        for _ in range(3):
            task = asyncio.create_task(anext(changes))  # type: ignore[arg-type]
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        waiting = asyncio.create_task(anext(changes))  # type: ignore[arg-type]
        await asyncio.sleep(0.02)
        db.insert("t", [(4, "c", 0)])
        return list(await waiting)

    assert within(main()) == [((4, "c", 0), 1)]


def test_tasks_share_a_subscription(db: alluvium.Database) -> None:
    async def main() -> list[Any]:
        changes = db.subscribe("t")
        await anext(changes)
        tasks = [asyncio.create_task(anext(changes)) for _ in range(3)]  # type: ignore[arg-type]
        await asyncio.sleep(0.02)
        for number in range(4, 7):
            db.insert("t", [(number, "c", 0)])
        return [list(change)[0][0][0] for change in await asyncio.gather(*tasks)]

    assert sorted(within(main())) == [4, 5, 6]


@pytest.mark.parametrize("what", ["subscription", "database"])
def test_closing_ends_the_tasks_that_wait(db: alluvium.Database, what: str) -> None:
    async def follow(changes: alluvium.Subscription) -> list[alluvium.Change]:
        return [change async for change in changes]

    async def main() -> Any:
        changes = db.subscribe("t")
        await anext(changes)
        task = asyncio.create_task(follow(changes))
        await asyncio.sleep(0.02)
        await asyncio.to_thread(changes.close if what == "subscription" else db.close)
        return await task

    assert within(main()) == []
