"""Results and tables as text and as HTML."""

import datetime
import decimal
import html.parser
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import alluvium
from alluvium import _cell, _display


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")


def numbers(db: alluvium.Database, count: int) -> None:
    db.sql("CREATE TABLE n (n BIGINT)")
    db.insert("n", [(number,) for number in range(count)])


def test_a_result_is_a_box(db: alluvium.Database) -> None:
    result = db.sql("SELECT * FROM (VALUES (1, 'one'), (20, NULL)) AS t(number, word) ORDER BY number")
    assert repr(result) == "\n".join(
        [
            "┌────────┬─────────┐",
            "│ number │ word    │",
            "│ BIGINT │ VARCHAR │",
            "├────────┼─────────┤",
            "│      1 │ one     │",
            "│     20 │ NULL    │",
            "└────────┴─────────┘",
            "(2 rows)",
        ]
    )


def test_shown_rows_stay_to_be_taken(db: alluvium.Database) -> None:
    numbers(db, 100)
    result = db.sql("SELECT n FROM n ORDER BY n")
    assert repr(result) == repr(result)
    assert "<table>" in result._repr_html_()  # type: ignore[attr-defined]
    assert [row[0] for row in result.fetchall()] == list(range(100))


@pytest.mark.parametrize(
    ("count", "caption"),
    [(0, "(0 rows)"), (1, "(1 row)"), (40, "(40 rows)"), (41, "(first 40 of 41 rows)"), (500, "(first 40 of 500 rows)")],
)
def test_the_rows_are_counted(db: alluvium.Database, count: int, caption: str) -> None:
    numbers(db, count)
    shown = repr(db.sql("SELECT n FROM n ORDER BY n"))
    assert shown.splitlines()[-1] == caption
    assert len(shown.splitlines()) == min(count, 40) + 6


def test_a_table_knows_its_length(db: alluvium.Database) -> None:
    numbers(db, 20_000)
    assert repr(db.sql("SELECT n FROM n").table()).endswith("(first 40 of 20,000 rows)")


def test_a_result_is_not_computed_to_be_counted(db: alluvium.Database) -> None:
    assert repr(db.sql("SELECT * FROM generate_series(1, 10000000) AS t(n)")).endswith("(first 40 rows of more)")


@pytest.mark.parametrize(
    ("shown", "total", "text"),
    [
        (0, 0, "0 rows"),
        (1, 1, "1 row"),
        (1234, 1234, "1,234 rows"),
        (40, 1234, "first 40 of 1,234 rows"),
        (40, None, "first 40 rows of more"),
    ],
)
def test_counts_are_words(shown: int, total: int | None, text: str) -> None:
    assert _display.count(shown, total) == text


def test_a_change_says_how_many_rows_it_has_changed(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE n (n BIGINT)")
    assert repr(db.sql("INSERT INTO n VALUES (1), (2)")) == "(2 rows changed)"
    assert repr(db.sql("DELETE FROM n WHERE n = 1")) == "(1 row changed)"


def test_a_definition_is_done(db: alluvium.Database) -> None:
    assert repr(db.sql("CREATE TABLE n (n BIGINT)")) == "(done)"


def test_an_explanation_is_its_text(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE n (n BIGINT); CREATE VIEW v AS SELECT n FROM n WHERE n < 5")
    result = db.sql("EXPLAIN VIEW v")
    assert repr(result).rstrip("\n") == (result.text or "").rstrip("\n")
    assert "n &lt; 5" in result._repr_html_()  # type: ignore[attr-defined]


def test_a_closed_result_can_be_shown(db: alluvium.Database) -> None:
    result = db.sql("SELECT 1 AS one")
    result.close()
    assert repr(result).startswith("(")


@pytest.mark.parametrize("show", [_display.text, _display.html])
def test_a_failed_result_can_be_shown(db: alluvium.Database, show: Callable[[alluvium.Result], str]) -> None:
    numbers(db, 50_000)
    result = db.sql("SELECT 1 / (n - 49999) AS q FROM n")
    # Rows are computed as they are taken, and the last one cannot be.
    while "division by zero" not in show(result):
        assert len(result.fetchmany(1_000)) == 1_000


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_a_box_fits_the_terminal(db: alluvium.Database, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    names = ", ".join(f"'{'x' * number * 5}' AS column_{number}" for number in range(12))
    lines = repr(db.sql(f"SELECT {names}")).splitlines()
    assert len({_cell.width(line) for line in lines[:-1]}) == 1
    assert _cell.width(lines[0]) <= max(columns, 3 * 20 + 4 * 3 + 1)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_narrow_columns_are_shown_whole(db: alluvium.Database, count: int) -> None:
    lines = repr(db.sql("SELECT " + ", ".join(f"{number} AS c{number}" for number in range(count)))).splitlines()
    assert lines[1].replace("│", " ").split() == [f"c{number}" for number in range(count)]
    assert lines[-1] == "(1 row)"


def test_wide_values_are_cut(db: alluvium.Database) -> None:
    lines = repr(db.sql(f"SELECT 1 AS a, '{'long ' * 100}' AS b")).splitlines()
    assert _cell.width(lines[0]) == 80
    assert lines[4].endswith("… │")


def test_columns_without_room_are_left_out_in_the_middle(db: alluvium.Database) -> None:
    lines = repr(db.sql("SELECT " + ", ".join(f"{number} AS column_{number}" for number in range(30)))).splitlines()
    assert "column_0 " in lines[1] and "column_29" in lines[1] and "│ … │" in lines[1]
    assert "column_15" not in lines[1]
    shown = lines[1].count("column_")
    assert lines[-1] == f"(1 row, {shown} of 30 columns)"


def test_wide_letters_take_two_columns(db: alluvium.Database) -> None:
    lines = repr(db.sql("SELECT * FROM (VALUES ('日本語'), ('e\u0301')) AS t(word)")).splitlines()
    assert len({_cell.width(line) for line in lines[:-1]}) == 1


def test_line_breaks_do_not_break_the_box(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE t (word VARCHAR)")
    db.insert("t", [("a\nb\tc\x1b[31m",)])
    shown = repr(db.sql("SELECT * FROM t"))
    assert len(shown.splitlines()) == 7
    assert "a\\nb\\tc\\x1b[31m" in shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (False, "false"),
        (-5, "-5"),
        (1.5, "1.5"),
        (float("nan"), "nan"),
        ("it's", "it's"),
        (b"\x00\xff", "\\x00ff"),
        (decimal.Decimal("1E+3"), "1000"),
        (decimal.Decimal("0.0000001"), "0.0000001"),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (datetime.time(1, 2, 3), "01:02:03"),
        (datetime.datetime(2024, 2, 29, 12, 30), "2024-02-29 12:30:00"),
        (datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc), "2024-02-29 00:00:00+00:00"),
        (datetime.timedelta(days=1, seconds=5), "1 day, 0:00:05"),
        ([1, None, [2]], "[1, NULL, [2]]"),
        ({"a": "it's", "b": None}, "{'a': 'it''s', 'b': NULL}"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
    ],
)
def test_values_are_texts_of_one_line(value: Any, text: str) -> None:
    assert _cell.text(value) == text


@pytest.mark.parametrize("value", ["x" * 10_000_000, list(range(1_000_000)), b"x" * 10_000_000, {str(n): n for n in range(100_000)}])
def test_long_values_are_cut(value: Any) -> None:
    shown = _cell.text(value)
    assert len(shown) == 200 and shown.endswith("…")


@given(st.text(max_size=50), st.integers(1, 60))
def test_a_cut_text_fits(text: str, columns: int) -> None:
    shown = _cell.cut(text, columns)
    assert _cell.width(shown) <= columns
    assert shown == text or (shown[-1] == "…" and text.startswith(shown[:-1]))


@given(st.text(max_size=50))
def test_shown_texts_are_printable(text: str) -> None:
    assert _cell.printable(text).isprintable()


class Elements(html.parser.HTMLParser):
    """The texts of elements, by their tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {}
        self.classes: dict[str, list[str | None]] = {}
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.texts.setdefault(tag, []).append("")
        self.classes.setdefault(tag, []).append(dict(attributes).get("class"))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts[self.open[-1]][-1] += data


def test_html_has_names_types_rows_and_a_count(db: alluvium.Database) -> None:
    shown = Elements(_display.html(db.sql("SELECT 1 AS one, 'a' AS letter, CAST(NULL AS BIGINT) AS nothing")))
    assert shown.texts["th"] == ["one", "letter", "nothing", "BIGINT", "VARCHAR", "BIGINT"]
    assert shown.texts["td"] == ["1", "a", "NULL"]
    assert shown.classes["td"] == ["number", None, "number null"]
    assert shown.texts["caption"] == ["1 row"]


def test_html_is_escaped(db: alluvium.Database) -> None:
    result = db.sql("""SELECT '<script>alert("&")</script>' AS "<b>" """)
    text = result._repr_html_()  # type: ignore[attr-defined]
    assert "<script" not in text and "<b>" not in text
    shown = Elements(text)
    assert shown.texts["td"] == ['<script>alert("&")</script>']
    assert shown.texts["th"][0] == "<b>"


def test_html_shows_the_first_rows(db: alluvium.Database) -> None:
    numbers(db, 100)
    shown = Elements(_display.html(db.sql("SELECT n FROM n ORDER BY n")))
    assert shown.texts["td"] == [str(number) for number in range(40)]
    assert shown.texts["caption"] == ["first 40 of 100 rows"]


def test_html_has_no_colours_of_its_own(db: alluvium.Database) -> None:
    style = Elements(_display.html(db.sql("SELECT 1"))).texts["style"][0]
    assert "#" not in style and "prefers-color-scheme" not in style
    assert all(rule.split("{")[0].strip().startswith(".alluvium") for rule in style.split("}") if rule.strip())


@pytest.mark.parametrize("type_", ["TINYINT", "UBIGINT", "INTEGER", "DOUBLE", "FLOAT", "DECIMAL(38,9)"])
def test_numbers_are_aligned_to_the_right(type_: str) -> None:
    assert _display.is_numeric(type_)


@pytest.mark.parametrize("type_", ["VARCHAR", "BOOLEAN", "DATE", "BIGINT[]", "STRUCT(a BIGINT)", "MAP(VARCHAR, BIGINT)"])
def test_other_values_are_aligned_to_the_left(type_: str) -> None:
    assert not _display.is_numeric(type_)
