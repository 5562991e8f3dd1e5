"""Databases."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _alluvium, _exit, _size
from ._live import Live
from ._plan import Plan
from ._sink import Policy, Sink
from ._source import Source

if TYPE_CHECKING:
    from ._alluvium import Change, Function

class Database(_alluvium.Database):
    """An engine, in memory or in a state directory, or a connection to a server: :func:`alluvium.open`, :func:`alluvium.memory` and
    :func:`alluvium.connect` make one.

    Threads may share it. It is closed by :meth:`close`, at the end of a ``with`` block, and when the interpreter ends.
    """

    def __new__(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        workers: int = 1,
        memory: int | str | None = None,
        durability: str = "always",
        files: bool | Sequence[str] = True,
        strict: bool = False,
        history: int | None = None,
        functions: Iterable[Function] = (),
        server: tuple[str, str | None, str | None] | None = None,
    ) -> Database:
        database = super().__new__(
            cls,
            None if path is None else os.fspath(path),
            server=server,
            workers=workers,
            memory=_size.parse(memory),
            durability=durability,
            files=files,
            strict=strict,
            history=history,
            functions=tuple(functions),
        )
        _exit.add_database(database)
        return database

    def source(
        self,
        table: str,
        iterable: Iterable[Any] | Callable[[], Iterable[Any]],
        *,
        upsert: bool = False,
        key: str | None = None,
    ) -> Source:
        """Fills a table from an iterable, on a thread of its own.

        Each item is a batch of rows, of any kind that :meth:`insert` takes, and is committed as one transaction. The iterable may also be a
        function without arguments that returns one; the thread calls it. With ``upsert`` rows take the place of those with the same key.

        >>> import alluvium
        >>> with alluvium.memory() as db:
        ...     _ = db.sql("CREATE TABLE n (n BIGINT)")
        ...     db.source("n", [[(1,), (2,)], [(3,)]]).wait()
        ...     db.sql("SELECT sum(n) AS s FROM n").fetchall()
        [(6,)]

        With a ``key`` each batch is committed once, also if the program ends at any time and begins again: the iterable then has to give the
        same batches in the same order. Batch ``n``, from zero, is committed under the key of transactions ``f"{key}:{n}"``, and left out if
        that was committed before. The engine remembers the last 100,000 keys: do not go on with a source after so many
        other transactions with keys.
        """
        return Source(self, table, iterable, upsert=upsert, key=key)

    def sink(
        self,
        relation: str,
        call: Callable[[Change], Any],
        *,
        after: int | None = None,
        policy: Policy = "block",
    ) -> Sink:
        """Calls a function with each change of a table or view, on a thread of its own.

        The first change is a snapshot, all rows that there are, unless the sink goes on ``after`` an epoch. A change
        has rows and weights, and an ``epoch``; ``policy`` is as for :meth:`subscribe`.

        >>> import alluvium
        >>> with alluvium.memory() as db:
        ...     _ = db.sql("CREATE TABLE n (n BIGINT)")
        ...     _ = db.insert("n", [(1,), (2,)])
        ...     with db.sink("n", lambda change: print(sorted(change))) as sink:
        ...         sink.wait_for(db.progress().committed)
        [((1,), 1), ((2,), 1)]
        """
        return Sink(self, relation, call, after=after, policy=policy)

    def live(self, relation: str, *, limit: int = 100, chart: str | None = None) -> Live:
        """Follows a table or view: an object that always has its rows, and that notebooks show as they change.

        It shows the first ``limit`` rows. ``chart="x,y"`` draws the column ``y`` over the column ``x`` instead.

        >>> import alluvium
        >>> with alluvium.memory() as db:
        ...     _ = db.sql("CREATE TABLE n (n BIGINT)")
        ...     live = db.live("n")
        ...     _ = db.insert("n", [(2,), (1,)])
        ...     live.refresh().rows
        [(1,), (2,)]
        """
        return Live(self, relation, limit=limit, chart=chart)

    def plan(self, view: str) -> Plan:
        """Returns how a view is maintained: its plan as text, and in notebooks as a picture.

        >>> import alluvium
        >>> with alluvium.memory() as db:
        ...     _ = db.sql("CREATE TABLE n (n BIGINT); CREATE VIEW big AS SELECT * FROM n WHERE n > 100")
        ...     db.plan("big")
        map n where n > 100
          scan n (n)
        """
        return Plan.of(self, view)

    def close(self) -> None:
        """Stops sources, sinks and live views, and closes the engine, or the connections to the server. Calls that are running end with an error.

        What was committed is in the state directory. To close it again does nothing.
        """
        _exit.stop_tasks_of(self)
        super().close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.is_remote:
            where = "on a server"
        else:
            where = "in memory" if self.path is None else f"in {self.path}"
        return f"<alluvium.Database {where}{', closed' if self.is_closed else ''}>"


def open(  # noqa: A001 (as for files)
    path: str | os.PathLike[str],
    *,
    workers: int = 1,
    memory: int | str | None = None,
    durability: str = "always",
    files: bool | Sequence[str] = True,
    strict: bool = False,
    history: int | None = None,
    functions: Iterable[Function] = (),
) -> Database:
    """Opens the database in a state directory, and makes it if it is not there.

    What is committed survives the process, and one process has it at a time.

    >>> import alluvium, pathlib, tempfile
    >>> directory = pathlib.Path(tempfile.mkdtemp(), "bank")
    >>> with alluvium.open(directory) as db:
    ...     _ = db.sql("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1)")
    >>> with alluvium.open(directory) as db:
    ...     db.sql("SELECT a FROM t").fetchall()
    [(1,)]

    - ``workers``: how many threads maintain views.
    - ``memory``: the memory budget, in bytes or as a text such as ``"512M"``, ``"2GiB"`` or ``"1500MB"``. ``K``, ``M``, ``G`` and ``T``, also
      ``KiB`` and so on, are powers of 1,024; ``KB``, ``MB``, ``GB`` and ``TB`` are powers of 1,000. The number is whole: ``"1500MB"`` and not ``"1.5GB"``.
      By default it is four fifths of the machine's.
    - ``durability``: when a commit is on the disk. ``"always"``: before the call returns; ``"interval(100)"``: at most 100 milliseconds later; ``"never"``:
      when the system writes it. A crash of the process alone loses no commit.
    - ``files``: whether SQL may read and write files; a list of folders allows only these.
    - ``strict``: whether a row that a source refuses is an error, and so a row for which an expression of a view fails.
    - ``history``: for how many epochs relations keep their changes, so that a subscription can go on after one of them.
    - ``functions``: functions of SQL in Python, made with :func:`alluvium.function`.
    """
    return Database(
        path,
        workers=workers,
        memory=memory,
        durability=durability,
        files=files,
        strict=strict,
        history=history,
        functions=functions,
    )


def memory(
    *,
    workers: int = 1,
    memory: int | str | None = None,
    files: bool | Sequence[str] = True,
    strict: bool = False,
    history: int | None = None,
    functions: Iterable[Function] = (),
) -> Database:
    """Opens a database that is there as long as this object. The options are those of :func:`alluvium.open`.

    >>> import alluvium
    >>> with alluvium.memory(memory="512M") as db:
    ...     db.sql("SELECT 1 + 1 AS two").fetchall()
    [(2,)]
    """
    return Database(
        None,
        workers=workers,
        memory=memory,
        files=files,
        strict=strict,
        history=history,
        functions=functions,
    )


def connect(url: str, *, user: str | None = None, password: str | None = None) -> Database:
    """Connects to a server, ``alluvium serve``: the database has the calls of one that this process has opened.

    ``url`` is ``postgresql://user:password@host:5432/``, with parameters as libpq has them, such as ``?sslmode=verify-full&sslrootcert=ca.pem``, or
    the folder of the server's socket. ``user`` and ``password`` come before those of the address; a password that neither has is that of the
    environment variable ``PGPASSWORD``.

    What differs:

    - A statement that fails aborts its transaction, as in Postgres: ``COMMIT`` then rolls back, and raises ``OperationalError``.
    - A frame of this process is no relation of the server, and its functions are none: rows come in by :meth:`Database.insert`.
    - The rows of a result that are left are taken into memory when its session runs the next statement: read results that are larger than
      memory in a session of their own.
    - A session whose connection was lost connects again with its next statement. That one raises ``OperationalError`` if a transaction, settings or
      temporary tables are lost with it.
    - Subscriptions survive their connections; they end with ``BehindError`` when they are further behind than the server allows.
    - Transactions have no keys, and what only the process with the engine can do raises ``NotSupportedError``.
    """
    return Database(server=(url, user, password))
