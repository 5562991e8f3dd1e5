"""The interface for databases of Python, `PEP 249 <https://peps.python.org/pep-0249/>`_, version 2.0.

>>> from alluvium import dbapi
>>> with dbapi.connect() as connection:
...     cursor = connection.cursor()
...     _ = cursor.execute("CREATE TABLE bid (auction BIGINT, price BIGINT)")
...     _ = cursor.executemany("INSERT INTO bid VALUES (?, ?)", [(1, 10), (1, 30), (2, 20)])
...     _ = cursor.execute("SELECT max(price) AS price FROM bid WHERE auction = ?", [1])
...     cursor.fetchall()
[(30,)]

The first statement of a connection begins a transaction, unless ``autocommit`` is set. It lasts until ``commit`` or ``rollback``. Definitions are
part of it: a view that it creates is filled when it commits. Inside of a transaction queries read one version of everything: tables with the
transaction's own writes, and materialized views without them. Some statements cannot be part of a transaction, such as those for tables
with connectors, sequences and functions. Run them on a connection with ``autocommit``.

A transaction fails with :class:`ConflictError` if another one has changed what it has read: roll back, and run it again.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._database import Database
from ._database import connect as connect_to_server
from ._errors import (
    ConflictError,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 (its name in PEP 249)
)
from ._placeholder import Statement

if TYPE_CHECKING:
    from ._alluvium import Result, Row

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "ConflictError",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "TypeObject",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
#: Threads may share the module and connections.
threadsafety = 2
#: Values are written ``?``. ``$1``, ``$2`` and so on are taken as well, but not both in one statement.
paramstyle = "qmark"

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes

#: A column of a result: its name, its type, and five items that PEP 249 has, of which precision and scale are known of DECIMAL.
Description = tuple[str, str, None, None, int | None, int | None, None]


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802 (its name in PEP 249)
    """Returns the date of a number of seconds since 1970, here."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802
    """Returns the time of day of a number of seconds since 1970, here."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802
    """Returns the date and time of a number of seconds since 1970, here."""
    return Timestamp(*time.localtime(ticks)[:6])


class TypeObject:
    """A kind of types. It equals the type of each column that is of this kind.

    >>> NUMBER == "BIGINT", NUMBER == "DECIMAL(10,2)", STRING == "BIGINT"
    (True, True, False)
    """

    def __init__(self, name: str, types: Iterable[str]) -> None:
        self._name = name
        self._types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self._types == other._types
        if isinstance(other, str):
            return other.partition("(")[0] in self._types
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._types)

    def __repr__(self) -> str:
        return self._name


#: Texts.
STRING = TypeObject("STRING", ["VARCHAR"])
#: Bytes.
BINARY = TypeObject("BINARY", ["BLOB"])
#: Numbers, and BOOLEAN.
NUMBER = TypeObject(
    "NUMBER",
    [
        *["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"],
        *["FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN"],
    ],
)
#: Dates and times.
DATETIME = TypeObject("DATETIME", ["DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL"])
#: Rows have no identifiers: no type equals it.
ROWID = TypeObject("ROWID", [])

_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(-?\d+)\)")
# They begin a transaction, or cannot be in one.
_BEFORE_TRANSACTION = ("BEGIN", "START", "CHECKPOINT")
# They change rows, and are run for many rows of values at once.
_OF_ROWS = ("INSERT", "UPDATE", "DELETE", "WITH")
# To which a transaction returns if one of many rows fails.
_SAVEPOINT = '"alluvium.dbapi: executemany"'


def connect(
    database: str | os.PathLike[str] | Database | None = None,
    *,
    autocommit: bool = False,
    **options: Any,
) -> Connection:
    """Connects to a database: one in memory, one in a state directory, one on a server, or one that is open.

    A text that begins with ``postgresql://`` is the address of a server, and its options are ``user`` and ``password``.

    A connection to a directory opens it, and has it alone. For several connections open the database and pass it to each of them: it then
    stays open when they are closed.

    >>> import alluvium
    >>> with alluvium.memory() as db, connect(db) as one, connect(db) as two:
    ...     _ = one.cursor().execute("CREATE TABLE t (a BIGINT)")
    ...     one.commit()
    ...     two.cursor().execute("SELECT * FROM t").fetchall()
    []

    Other ``options`` are those of :func:`alluvium.open`.
    """
    if isinstance(database, Database):
        if options:
            raise InterfaceError(f"the database is open: give {', '.join(options)} to the call that opens it")
        return Connection(database, owns=False, autocommit=autocommit)
    if isinstance(database, str) and database.startswith(("postgresql://", "postgres://")):
        return Connection(connect_to_server(database, **options), owns=True, autocommit=autocommit)
    return Connection(Database(database, **options), owns=True, autocommit=autocommit)


class Connection:
    """A connection, with at most one transaction that is open: :func:`connect` makes one.

    As a context manager it commits at the end of the block, or rolls back if that raises, and is closed.
    """

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, database: Database, *, owns: bool, autocommit: bool) -> None:
        self._database = database
        self._owns = owns
        self._autocommit = autocommit
        # One statement at a time, with the transaction that it begins.
        self._lock = threading.RLock()
        self._is_closed = False
        self._session = database.session()

    @property
    def database(self) -> Database:
        """The database."""
        return self._database

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own, unless it stands between BEGIN and COMMIT."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, autocommit: bool) -> None:
        with self._lock:
            if self._session.in_transaction:
                raise ProgrammingError("a transaction is open: commit() or rollback() before autocommit changes")
            self._autocommit = autocommit

    def cursor(self) -> Cursor:
        """Returns a new cursor."""
        self._check()
        return Cursor(self)

    def commit(self) -> None:
        """Commits the transaction. Does nothing if none is open."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """Takes the transaction back. Does nothing if none is open."""
        self._end("ROLLBACK")

    def close(self) -> None:
        """Closes the connection, and the database if this has opened it. A transaction that is open is rolled back."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            try:
                if not self._database.is_closed:
                    self._session.close()
            finally:
                if self._owns:
                    self._database.close()

    def __enter__(self) -> Connection:
        self._check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None and not self._is_closed:
                self.commit()
        finally:
            self.close()

    def _run(self, statement: Statement, parameters: Sequence[Any]) -> Result:
        with self._lock:
            self._check()
            begins = not self._autocommit and not self._session.in_transaction
            if begins and statement.keyword not in _BEFORE_TRANSACTION:
                self._session.sql("BEGIN")
            return self._session.sql(statement.text, *parameters)

    def _run_many(self, statement: Statement, rows: Iterator[Sequence[Any]]) -> int:
        """Runs a statement for each row of values, and returns how many rows of tables that changes."""
        with self._lock:
            self._check()
            if statement.keyword not in _OF_ROWS:
                return sum(self._run_alone(statement, parameters) for parameters in rows)
            first = list(itertools.islice(rows, 1))
            if not first:
                return 0
            rows = itertools.chain(first, rows)
            is_own = not self._session.in_transaction
            if is_own:
                self._session.sql("BEGIN")
            is_alone = is_own and self._autocommit
            if not is_alone:
                self._session.sql(f"SAVEPOINT {_SAVEPOINT}")
            try:
                changed = self._session._many(statement.text, statement.insertion, _checked(statement, rows))
                self._session.sql("COMMIT" if is_alone else f"RELEASE {_SAVEPOINT}")
            except BaseException:
                with contextlib.suppress(Error):
                    if not is_alone:
                        self._session.sql(f"ROLLBACK TO {_SAVEPOINT}")
                        self._session.sql(f"RELEASE {_SAVEPOINT}")
                    elif self._session.in_transaction:
                        self._session.sql("ROLLBACK")
                raise
            return changed

    def _run_alone(self, statement: Statement, parameters: Sequence[Any]) -> int:
        result = self._run(statement, _values(statement, parameters))
        if result.has_rows:
            result.close()
            raise ProgrammingError("executemany() runs statements that return no rows: call execute() for each of the others")
        return result.rows_changed or 0

    def _end(self, statement: str) -> None:
        with self._lock:
            self._check()
            if self._session.in_transaction:
                self._session.sql(statement)

    def _check(self) -> None:
        if self._is_closed:
            raise InterfaceError("the connection is closed")


class Cursor:
    """Runs statements, and takes the rows of queries: :meth:`Connection.cursor` makes one.

    The rows of a query are computed as they are fetched.
    """

    #: How many rows ``fetchmany`` takes if it is not told.
    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._result: Result | None = None
        self._rowcount = -1
        self._is_closed = False

    @property
    def connection(self) -> Connection:
        """The connection."""
        return self._connection

    @property
    def description(self) -> list[Description] | None:
        """The columns of the result; None if the statement returns no rows. The type of a column is that of SQL, and equals a :class:`TypeObject`;
        lists, structs and maps equal none."""
        if self._result is None or not self._result.has_rows:
            return None
        return [_description(name, type_) for name, type_ in zip(self._result.columns, self._result.types)]

    @property
    def rowcount(self) -> int:
        """How many rows the statement has changed; -1 of a query, whose rows are computed as they are fetched."""
        return self._rowcount

    def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Cursor:
        """Runs a statement, with a value for each ``?`` in it. Returns the cursor itself."""
        self._forget()
        statement = Statement(operation)
        result = self._connection._run(statement, _values(statement, parameters))
        self._result = result
        if result.rows_changed is not None:
            self._rowcount = result.rows_changed
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Sequence[Any]]) -> Cursor:
        """Runs a statement that returns no rows once for each sequence of values. Returns the cursor itself.

        The sequences may come from an iterator, which is read some thousand at a time. If one of them fails, ``INSERT``, ``UPDATE`` and ``DELETE`` have
        changed nothing, also with ``autocommit``, and the error names it by its number, from zero on. An ``INSERT`` of one row of values and constants
        is the quickest: its rows are inserted together.
        """
        self._forget()
        self._rowcount = self._connection._run_many(Statement(operation), iter(seq_of_parameters))
        return self

    def fetchone(self) -> Row | None:
        """Returns the next row; None after the last one."""
        return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Returns the next rows, at most ``size``, or as many as ``arraysize`` says."""
        return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        """Returns all rows that are left."""
        return self._rows().fetchall()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing: PEP 249 has it."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: PEP 249 has it."""

    def close(self) -> None:
        """Closes the cursor, and drops the rows that are left."""
        if not self._is_closed:
            if not self._connection._is_closed:
                self._forget()
            self._is_closed = True

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _forget(self) -> None:
        self._check()
        if self._result is not None:
            self._result.close()
        self._result = None
        self._rowcount = -1

    def _rows(self) -> Result:
        self._check()
        if self._result is None or not self._result.has_rows:
            raise ProgrammingError("there are no rows to fetch: execute() a query first")
        return self._result

    def _check(self) -> None:
        if self._is_closed:
            raise InterfaceError("the cursor is closed")
        self._connection._check()


def _description(name: str, type_: str) -> Description:
    decimal = _DECIMAL.fullmatch(type_)
    precision, scale = (None, None) if decimal is None else (int(decimal[1]), int(decimal[2]))
    return name, type_, None, None, precision, scale, None


def _values(statement: Statement, parameters: Sequence[Any]) -> Sequence[Any]:
    """The values for a statement, which has to have a place for each."""
    if isinstance(parameters, (str, bytes, Mapping)) or not isinstance(parameters, Sequence):
        kind = type(parameters).__name__
        raise ProgrammingError(f"parameters are a {kind}: give a sequence, with a value for each ? in the statement")
    if statement.marks and statement.has_numbers:
        raise ProgrammingError("the statement has both ? and $1: write all of its parameters in one way")
    if statement.marks != len(parameters) and not statement.has_numbers:
        raise ProgrammingError(f"the statement has {_many(statement.marks, '?')}, and there are {_many(len(parameters), 'value')}")
    return parameters


def _checked(statement: Statement, rows: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """The rows of values, each of which has to have a value for each place."""
    for number, parameters in enumerate(rows):
        try:
            values = _values(statement, parameters)
        except ProgrammingError as error:
            raise ProgrammingError(f"row {number}: {error.message}") from None
        yield values


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 or noun == "?" else f"{count} {noun}s"
