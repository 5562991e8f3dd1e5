"""Views that are shown as they change."""

from __future__ import annotations

import heapq
import html
import importlib
import math
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _chart, _display
from ._errors import Error
from ._follower import Follower

if TYPE_CHECKING:
    from ._alluvium import Change, Row, Subscription
    from ._database import Database

# Notebooks are updated at most this often, in seconds.
_INTERVAL = 0.25


class Live(Follower):
    """The rows of a table or view, always up to date: :meth:`Database.live` makes one.

    A cell of a notebook that ends with it shows the rows, and Jupyter changes what is shown while they change. In marimo, call :meth:`refresh` in a
    cell that runs again, such as one with ``mo.ui.refresh``.

    It follows the relation until :meth:`stop`, or until the database is closed; the rows of then stay.
    """

    def __init__(self, database: Database, relation: str, *, limit: int, chart: str | None) -> None:
        if limit < 1:
            raise ValueError(f"limit is {limit}: show at least one row")
        subscription = _subscribed(database, relation)
        self._columns = subscription.columns
        self._types = subscription.types
        self._limit = limit
        try:
            self._chart = None if chart is None else _chart.columns_of(chart, self._columns)
        except ValueError:
            subscription.close()
            raise
        super().__init__(database, f"live {relation}", relation, subscription)
        # Rows by what makes them equal, each with its weight.
        self._weights: dict[Any, tuple[Row, int]] = {}
        self._version = 0
        # What notebooks show, and the version that they do.
        self._handles: list[Any] = []
        self._shown = 0
        self._shown_at = 0.0
        self._start()

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    @property
    def types(self) -> list[str]:
        """The types of the columns, as SQL has them."""
        return list(self._types)

    @property
    def rows(self) -> list[Row]:
        """All rows, in order of their columns, NULLs last."""
        weights, _ = self._contents()
        return list(_repeated(sorted(weights, key=_order)))

    @property
    def version(self) -> int:
        """How many changes it has taken."""
        return self._version

    def refresh(self, timeout: float | None = None) -> Live:
        """Waits until it has everything that is committed now, and shows that. Returns itself.

        Notebooks of Jupyter are updated, and in marimo the output of the cell that calls this. After ``timeout`` seconds it raises ``TimeoutError``.
        """
        if not self._is_done:
            self.wait_for(self._database.progress().committed, timeout)
        self._raise()
        self._show()
        marimo = sys.modules.get("marimo")
        if marimo is not None and marimo.running_in_notebook():
            marimo.output.replace(self)
        return self

    def _repr_html_(self) -> str:
        weights, epoch = self._contents()
        total = sum(weight for _, weight in weights)
        if self._chart is None:
            shown = heapq.nsmallest(self._limit, weights, key=_order)
        else:
            shown = sorted(weights, key=_order)
        rows = [row for row, _ in zip(_repeated(shown), range(self._limit))]
        caption = f"{self._relation}: {_display.count(len(rows), total)}"
        if epoch is not None:
            caption += f", epoch {epoch:,}"
        if self._error is not None:
            caption += f"; it has ended: {self._error}"
        if self._chart is None:
            return _display.html_of_rows(self._columns, self._types, rows, caption)
        x, y = self._chart
        chart = _chart.svg([(row[x], row[y]) for row in rows], self._columns[x], self._columns[y])
        return _display.framed(f"<figure>{chart}<figcaption>{html.escape(caption)}</figcaption></figure>")

    def _mime_(self) -> tuple[str, str]:
        # As marimo asks for it.
        return "text/html", self._repr_html_()

    def _ipython_display_(self) -> None:
        ipython = importlib.import_module("IPython.display")
        handle = ipython.display(ipython.HTML(self._repr_html_()), display_id=True)
        with self._condition:
            self._handles.append(handle)
            # It may have missed a change since it was made.
            self._shown = -1

    def __repr__(self) -> str:
        reached = "no rows yet" if self._epoch is None else f"{len(self):,} rows as of epoch {self._epoch}"
        return f"<alluvium.Live {self._relation}: {reached}, {self._state()}>"

    def __len__(self) -> int:
        weights, _ = self._contents()
        return sum(weight for _, weight in weights)

    def _run(self) -> None:
        try:
            super()._run()
        finally:
            self._show()

    def _contents(self) -> tuple[list[tuple[Row, int]], int | None]:
        """The rows with their weights, and the epoch that they are of; waits for the first ones."""
        with self._condition:
            if threading.current_thread() is not self._thread:
                self._condition.wait_for(lambda: self._version > 0 or self._is_done)
            return list(self._weights.values()), self._epoch

    def _take(self, change: Change) -> None:
        changes = list(change)
        with self._condition:
            if change.is_snapshot:
                self._weights.clear()
            for row, weight in changes:
                key = _identity(row)
                weight += self._weights.get(key, (row, 0))[1]
                if weight:
                    self._weights[key] = (row, weight)
                else:
                    self._weights.pop(key, None)
            self._version += 1
            self._epoch = change.epoch

    def _rest(self) -> None:
        if self._version != self._shown and time.monotonic() >= self._shown_at + _INTERVAL:
            self._show()

    def _show(self) -> None:
        """Updates notebooks."""
        with self._condition:
            handles = list(self._handles)
            if not handles:
                return
            self._shown, self._shown_at = self._version, time.monotonic()
        shown = importlib.import_module("IPython.display").HTML(self._repr_html_())
        for handle in handles:
            try:
                handle.update(shown)
            except Exception:
                # The notebook has gone.
                with self._condition:
                    if handle in self._handles:
                        self._handles.remove(handle)


def _subscribed(database: Database, relation: str) -> Subscription:
    try:
        # Nobody has to wait for a notebook.
        return database.subscribe(relation, policy="resync")
    except Error:
        # A view that keeps no rows cannot begin again.
        return database.subscribe(relation)


def _repeated(weights: list[tuple[Row, int]]) -> Iterator[Row]:
    for row, weight in weights:
        for _ in range(weight):
            yield row


def _identity(value: Any) -> Any:
    """What is equal for equal values, and can be a key."""
    if isinstance(value, (tuple, list)):
        return tuple(map(_identity, value))
    if isinstance(value, dict):
        return tuple((_identity(key), _identity(item)) for key, item in value.items())
    if isinstance(value, float) and math.isnan(value):
        return "NaN", None
    if isinstance(value, float) and value == 0:
        # There are two zeros.
        return value, math.copysign(1, value)
    return value


def _order(weighted: tuple[Row, int]) -> tuple[Any, ...]:
    return _position(weighted[0])


def _position(value: Any) -> tuple[Any, ...]:
    """What sorts as a value does among values of its type: NaN after numbers, NULL after all."""
    if value is None:
        return (2,)
    if isinstance(value, float) and math.isnan(value):
        return (1,)
    if isinstance(value, (tuple, list)):
        return 0, tuple(map(_position, value))
    if isinstance(value, dict):
        return 0, tuple((_position(key), _position(item)) for key, item in value.items())
    return 0, value
