"""Views that are shown as they change."""

import datetime
import importlib
import math
import sys
import types
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import pytest

import alluvium
from alluvium import _chart

Until = Callable[[Callable[[], object]], None]


@pytest.fixture
def best(db: alluvium.Database) -> alluvium.Database:
    db.sql(
        """
        CREATE TABLE bid (auction BIGINT, price BIGINT);
        CREATE MATERIALIZED VIEW best AS SELECT auction, max(price) AS price FROM bid GROUP BY auction
        """
    )
    return db


def test_rows_are_there_from_the_beginning(best: alluvium.Database) -> None:
    best.insert("bid", [(2, 20), (1, 10)])
    assert best.live("best").rows == [(1, 10), (2, 20)]


def test_rows_follow_the_view(best: alluvium.Database) -> None:
    live = best.live("best")
    assert live.rows == []
    best.insert("bid", [(1, 10), (2, 20)])
    assert live.refresh().rows == [(1, 10), (2, 20)]
    best.insert("bid", [(1, 30)])
    assert live.refresh().rows == [(1, 30), (2, 20)]
    best.sql("DELETE FROM bid WHERE auction = 2")
    assert live.refresh().rows == [(1, 30)]
    assert len(live) == 1


def test_rows_come_without_a_refresh(best: alluvium.Database, until: Until) -> None:
    live = best.live("best")
    best.insert("bid", [(1, 10)])
    until(lambda: live.rows == [(1, 10)])


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_a_live_follows_views_of_any_kind(db: alluvium.Database, kind: str) -> None:
    db.sql(f"CREATE TABLE n (n BIGINT); CREATE {kind} v AS SELECT n FROM n WHERE n > 1")
    live = db.live("v")
    db.insert("n", [(1,), (2,), (3,)])
    assert live.refresh().rows == [(2,), (3,)]


@pytest.mark.engine("over a connection rows are deleted by key")
def test_copies_of_a_row_are_rows(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE n (n BIGINT)")
    live = db.live("n")
    db.insert("n", [(1,), (1,), (2,)])
    assert live.refresh().rows == [(1,), (1,), (2,)]
    db.delete("n", [(1,)])
    assert live.refresh().rows == [(1,), (2,)]
    assert len(live) == 2


def test_versions_and_epochs_rise(best: alluvium.Database) -> None:
    live = best.live("best")
    live.refresh()
    before = live.version
    best.insert("bid", [(1, 10)])
    live.refresh()
    assert live.version == before + 1
    assert live.epoch == best.progress().committed


def test_rows_are_sorted_with_nulls_last(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (a DOUBLE, b VARCHAR)")
    live = db.live("t")
    db.insert("t", [(None, "x"), (math.nan, "y"), (1.0, None), (1.0, "b"), (-math.inf, "z"), (1.0, "a")])
    rows = [("nan" if row[0] is not None and math.isnan(row[0]) else row[0], row[1]) for row in live.refresh().rows]
    assert rows == [(-math.inf, "z"), (1.0, "a"), (1.0, "b"), (1.0, None), ("nan", "y"), (None, "x")]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("DOUBLE", math.nan),
        ("DOUBLE", -0.0),
        ("BIGINT[]", [1, None]),
        ("STRUCT<a BIGINT, b VARCHAR>", {"a": 1, "b": None}),
        ("STRUCT<a BIGINT[]>", {"a": [1, 2]}),
        ("BYTEA", b"\x00"),
        ("DATE", datetime.date(2024, 1, 1)),
        ("TIMESTAMP", datetime.datetime(2024, 1, 1, 12)),
    ],
)
def test_rows_of_any_type_come_and_go(db: alluvium.Database, type_: str, value: Any) -> None:
    db.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, v {type_})")
    live = db.live("t")
    db.insert("t", [(1, value), (2, None)])
    assert len(live.refresh()) == 2
    assert [row[0] for row in live.rows] == [1, 2]
    db.sql("DELETE FROM t")
    assert live.refresh().rows == []


def test_html_shows_the_first_rows(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE n (n BIGINT)")
    db.insert("n", [(number,) for number in range(1_500)])
    live = db.live("n", limit=3)
    shown = live.refresh()._repr_html_()
    assert shown.count("<td") == 3
    assert f"n: first 3 of 1,500 rows, epoch {live.epoch}" in shown
    assert live._mime_() == ("text/html", shown)


def test_html_is_escaped(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (word VARCHAR)")
    db.insert("t", [("<script>",)])
    shown = db.live("t").refresh()._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown


def test_columns_and_types_are_those_of_the_view(best: alluvium.Database) -> None:
    live = best.live("best")
    assert live.columns == ["auction", "price"]
    assert live.types == ["BIGINT", "BIGINT"]


def test_a_stopped_live_keeps_its_rows(best: alluvium.Database) -> None:
    best.insert("bid", [(1, 10)])
    live = best.live("best")
    live.refresh()
    live.stop()
    best.insert("bid", [(2, 20)])
    assert live.rows == [(1, 10)]
    assert live.is_done
    assert live.refresh() is live
    assert repr(live).endswith("ended>")


def test_rows_outlive_the_database() -> None:
    with alluvium.memory() as db:
        db.sql("CREATE TABLE n (n BIGINT)")
        db.insert("n", [(1,)])
        live = db.live("n").refresh()
    assert live.rows == [(1,)]
    assert "1 row" in live._repr_html_()


@pytest.mark.parametrize("chart", ["auction", "auction,price,bids", "auction,cost", ","])
def test_a_chart_of_columns_that_are_not_there_is_refused(best: alluvium.Database, chart: str) -> None:
    with pytest.raises(ValueError, match="chart is"):
        best.live("best", chart=chart)


def test_a_limit_below_one_is_refused(best: alluvium.Database) -> None:
    with pytest.raises(ValueError, match="at least one row"):
        best.live("best", limit=0)


def test_a_relation_that_is_not_there_is_an_error(db: alluvium.Database) -> None:
    with pytest.raises(alluvium.ProgrammingError, match="nowhere"):
        db.live("nowhere")


def test_a_chart_shows_two_columns(best: alluvium.Database) -> None:
    best.insert("bid", [(1, 10), (2, 30), (3, 20)])
    shown = best.live("best", chart="auction,price").refresh()._repr_html_()
    assert shown.count("<circle") == 3 and "<table" not in shown
    assert "3 rows" in shown


NAMES = [("north", 3), ("south", -2), ("<west>", 5)]
DAYS = [(datetime.date(2024, 1, day), day * 10) for day in (3, 1, 2)]


def shapes(svg: str, tag: str) -> list[dict[str, str]]:
    return [element.attrib for element in ElementTree.fromstring(svg).iter(f"{{http://www.w3.org/2000/svg}}{tag}")]


def test_names_have_bars() -> None:
    svg = _chart.svg(NAMES, "region", "sales")
    bars = shapes(svg, "rect")
    assert len(bars) == 3 and not shapes(svg, "circle")
    tops = [float(bar["y"]) for bar in bars]
    assert tops[2] < tops[0] < tops[1]
    assert "<west>" not in svg


def test_times_have_a_line_in_their_order() -> None:
    svg = _chart.svg(DAYS, "day", "sales")
    points = [(float(point["cx"]), float(point["cy"])) for point in shapes(svg, "circle")]
    assert points == sorted(points)
    assert [top for _, top in points] == sorted((top for _, top in points), reverse=True)


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(1, 0)],
        [(1, 5), (1, 6)],
        [(None, 5), (2, None)],
        [(1, math.nan), (2, math.inf), (3, 1)],
        [(1, 1e-300), (2, 2e-300)],
        [(1, 1e299), (2, -1e299)],
        [("a", "b")],
        [(True, 1), (False, 2)],
        [(datetime.datetime(1, 1, 1), 1), (datetime.datetime(9999, 12, 31), 2)],
        [(datetime.time(12), datetime.timedelta(hours=1))],
        [("x" * 1000, 1)],
    ],
)
def test_a_chart_of_any_values_stays_inside(points: list[tuple[Any, Any]]) -> None:
    svg = _chart.svg(points, "x", "y")
    assert "nan" not in svg and "inf" not in svg
    for circle in shapes(svg, "circle"):
        assert 0 <= float(circle["cx"]) <= 640 and 0 <= float(circle["cy"]) <= 260
    for bar in shapes(svg, "rect"):
        assert 0 <= float(bar["x"]) <= 640 and 0 <= float(bar["y"]) <= 260 and float(bar["height"]) > 0


class Display:
    """What notebooks have shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.is_gone = False

    def update(self, shown: Any) -> None:
        if self.is_gone:
            raise RuntimeError("the kernel has ended")
        self.shown.append(shown.data)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Display:
    """A notebook of Jupyter that keeps what is displayed."""
    display = Display()

    def show(shown: Any, *, display_id: bool) -> Display:
        assert display_id
        display.shown.append(shown.data)
        return display

    module = types.ModuleType("IPython.display")
    module.HTML = lambda data: types.SimpleNamespace(data=data)  # type: ignore[attr-defined]
    module.display = show  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    assert importlib.import_module("IPython.display") is module
    return display


def test_jupyter_shows_changes(best: alluvium.Database, notebook: Display, until: Until) -> None:
    live = best.live("best")
    live._ipython_display_()
    assert "0 rows" in notebook.shown[-1]
    best.insert("bid", [(1, 10)])
    until(lambda: "1 row" in notebook.shown[-1])
    best.insert("bid", [(2, 10)])
    until(lambda: "2 rows" in notebook.shown[-1])


def test_jupyter_is_not_updated_for_each_change(best: alluvium.Database, notebook: Display, until: Until) -> None:
    live = best.live("best")
    live._ipython_display_()
    for number in range(300):
        best.insert("bid", [(number, number)])
    until(lambda: "of 300 rows" in notebook.shown[-1])
    assert len(notebook.shown) < live.version


def test_the_last_rows_are_shown_when_it_stops(best: alluvium.Database, notebook: Display) -> None:
    live = best.live("best")
    live._ipython_display_()
    # All but the first of these come too soon to be shown at once.
    for number in range(10):
        best.insert("bid", [(number, 10)])
        live.wait_for(best.progress().committed)
    live.stop()
    assert "10 rows" in notebook.shown[-1]


def test_a_notebook_that_has_gone_is_forgotten(best: alluvium.Database, notebook: Display, until: Until) -> None:
    live = best.live("best")
    live._ipython_display_()
    notebook.is_gone = True
    best.insert("bid", [(1, 10)])
    until(lambda: not live._handles)
    assert live.refresh().rows == [(1, 10)]
    assert live.error is None


def test_marimo_replaces_the_output_of_a_cell(best: alluvium.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced: list[Any] = []
    marimo = types.ModuleType("marimo")
    marimo.running_in_notebook = lambda: True  # type: ignore[attr-defined]
    marimo.output = types.SimpleNamespace(replace=replaced.append)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    live = best.live("best")
    assert replaced == []
    live.refresh()
    assert replaced == [live]


def test_notebooks_are_imported_only_when_used(best: alluvium.Database) -> None:
    before = set(sys.modules)
    best.live("best").refresh()._repr_html_()
    assert not {name for name in set(sys.modules) - before if name.split(".")[0] in ("IPython", "marimo")}
