"""Functions that are called with the changes of a relation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from ._follower import Follower

if TYPE_CHECKING:
    from ._alluvium import Change
    from ._database import Database

Policy = Literal["block", "disconnect", "resync"]


class Sink(Follower):
    """Calls a function with each change of a relation, on a thread of its own: :meth:`Database.sink` makes one.

    It ends when the relation is dropped, or with the first error of the function, which is kept and raised by :meth:`stop` and
    :meth:`wait_for`. A change for which the function has failed does not count as taken: ``epoch`` is that of the one before.

    >>> import alluvium
    >>> with alluvium.memory() as db:
    ...     _ = db.sql("CREATE TABLE n (n BIGINT)")
    ...     seen = []
    ...     with db.sink("n", lambda change: seen.extend(change)) as sink:
    ...         _ = db.insert("n", [(1,), (2,)])
    ...         sink.wait_for(db.progress().committed)
    ...     sorted(seen)
    [((1,), 1), ((2,), 1)]
    """

    def __init__(
        self,
        database: Database,
        relation: str,
        call: Callable[[Change], Any],
        *,
        after: int | None,
        policy: Policy,
    ) -> None:
        if not callable(call):
            raise TypeError(f"a {type(call).__name__} cannot be called: a sink takes a function of one change")
        subscription = database.subscribe(relation, after=after, policy=policy)
        super().__init__(database, f"sink of {relation}", relation, subscription)
        self._call = call
        if after is not None:
            self._passed = after
        self._start()

    def __repr__(self) -> str:
        reached = "no change yet" if self._epoch is None else f"epoch {self._epoch}"
        return f"<alluvium.Sink of {self._relation}: {reached}, {self._state()}>"

    def _take(self, change: Change) -> None:
        self._call(change)
