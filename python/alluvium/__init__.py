"""An embeddable, incremental SQL engine.

You give it tables, changes to them, and SQL views. It keeps every view exactly up to date, and does work in proportion to the
change and not to the data.

>>> import alluvium
>>> with alluvium.memory(workers=2) as db:
...     _ = db.sql('''
...         CREATE TABLE bid (auction BIGINT NOT NULL, price BIGINT NOT NULL);
...         CREATE MATERIALIZED VIEW best AS
...            SELECT auction, COUNT(*) AS bids, MAX(price) AS price FROM bid GROUP BY auction;
...     ''')
...     _ = db.insert("bid", [(1, 10), (1, 30), (2, 20)])
...
...     # First the view's contents, then its changes, epoch by epoch.
...     with db.subscribe("best") as changes:
...         print(len(next(changes)), "rows")
...         _ = db.sql("DELETE FROM bid WHERE price = 30")
...         print(sorted(next(changes)))
...
...     db.sql("SELECT * FROM best ORDER BY auction").fetchall()
2 rows
[((1, 1, 10), 1), ((1, 2, 30), -1)]
[(1, 1, 10), (2, 1, 20)]

:func:`memory` and :func:`open` return a :class:`Database`, as does :func:`connect` for one on a server. Errors are below :class:`Error`. :mod:`alluvium.dbapi` is the interface of PEP 249.
"""

from ._alluvium import (
    Change,
    Function,
    Progress,
    RelationInfo,
    Result,
    Session,
    State,
    Subscription,
    Table,
    Transaction,
    View,
    __version__,
)
from ._database import Database, connect, memory, open  # noqa: A004 (as for files)
from ._errors import (
    BehindError,
    ConflictError,
    DatabaseError,
    DataError,
    DeniedError,
    Error,
    GoneError,
    IntegrityError,
    InterfaceError,
    InternalError,
    InterruptedError,  # noqa: A004 (there is one of the operating system as well)
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    SourceError,
    StateError,
    TimedOutError,
    ViewFailedError,
    Warning,  # noqa: A004 (its name in PEP 249)
)
from ._function import function
from ._live import Live
from ._plan import Plan
from ._sink import Sink
from ._source import Source

__all__ = [
    "BehindError",
    "Change",
    "ConflictError",
    "DataError",
    "Database",
    "DatabaseError",
    "DeniedError",
    "Error",
    "Function",
    "GoneError",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "InterruptedError",
    "Live",
    "NotSupportedError",
    "OperationalError",
    "Plan",
    "ProgrammingError",
    "Progress",
    "RelationInfo",
    "Result",
    "Session",
    "Sink",
    "Source",
    "SourceError",
    "State",
    "StateError",
    "Subscription",
    "Table",
    "TimedOutError",
    "Transaction",
    "View",
    "ViewFailedError",
    "Warning",
    "__version__",
    "connect",
    "function",
    "memory",
    "open",
]
