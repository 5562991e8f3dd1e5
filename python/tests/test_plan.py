"""Plans of views as text and as pictures."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

import alluvium
from alluvium._display import plan_svg
from alluvium._plan import Plan

JOIN = """\
first 10 rows in order of s desc, seller [unique: (seller); keeps: rows in order as top.1 16b82d71]
  map seller, sum(price) AS s [unique: (seller)]
    join on auction = id [keeps: left by (auction) in index a4b2804f, right by (id) in index 1e209a93]
      map auction, price where price > 3
        scan bid (auction, price)
      scan auction (id, seller) [unique: (id)]
"""


def boxes(svg: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each box."""
    found = []
    for rect in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect"):
        left, top, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        found.append((left, top, left + width, top + height))
    return found


def texts(svg: str) -> list[str]:
    """The lines in boxes."""
    lines = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(line.itertext()) for line in lines]


def test_each_operator_is_a_box() -> None:
    svg = plan_svg(JOIN)
    assert len(boxes(svg)) == 6
    assert "first 10 rows in order of s desc, seller" in texts(svg)
    assert "scan bid (auction, price)" in texts(svg)


def test_properties_are_lines_of_their_own() -> None:
    lines = texts(plan_svg(JOIN))
    assert "unique: (seller)" in lines
    assert "keeps: rows in order as top.1 16b82d71" in lines
    assert not any("[" in line for line in lines)


def test_boxes_do_not_overlap_and_are_inside_of_the_picture() -> None:
    svg = plan_svg(JOIN)
    root = ElementTree.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    placed = boxes(svg)
    for number, (left, top, right, bottom) in enumerate(placed):
        assert left >= 0 and top >= 0 and right <= width and bottom <= height
        for other in placed[number + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


@pytest.mark.parametrize("branches", [1, 2, 5])
def test_wide_operators_above_narrow_ones_do_not_overlap(branches: int) -> None:
    plan = "union all of many inputs whose names are long\n"
    plan += "  map a_column_with_a_long_name, b where c > 4\n    scan t\n" * branches
    placed = boxes(plan_svg(plan))
    assert len(placed) == 2 * branches + 1
    for number, (left, top, right, bottom) in enumerate(placed):
        for other in placed[number + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


@pytest.mark.parametrize("plan", ["map a, b, c, d, e, f, g where a > 4\n  scan t", "map a\n  scan table_of_a_long_name (a, b, c)"])
def test_an_input_is_below_the_middle_of_its_operator(plan: str) -> None:
    above, below = ((left + right) / 2 for left, _, right, _ in boxes(plan_svg(f"union all\n  scan u\n  {plan.replace(chr(10), chr(10) + '  ')}"))[2:])
    assert abs(above - below) < 0.2


def test_inputs_are_below_with_an_arrow_each() -> None:
    svg = plan_svg(JOIN)
    tops = [top for _, top, _, _ in boxes(svg)]
    assert tops == sorted(tops)
    # A way and a head for each operator but the first.
    assert len(list(ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}path"))) == 2 * 5


def test_texts_are_escaped() -> None:
    svg = plan_svg("scan \"<script>alert('&')</script>\"\x07 (a)")
    assert "<script>" not in svg
    assert "".join(texts(svg)).startswith("scan \"<script>alert('&')</script>\"")


def test_brackets_of_an_expression_are_no_properties() -> None:
    lines = texts(plan_svg("map a where b = ' [unique: x' and c = [1] [unique: (a)]"))
    assert lines == ["map a where b = ' [unique: x' and c = [1]", "unique: (a)"]


def test_long_lines_are_broken() -> None:
    columns = ", ".join(f"column_{number}" for number in range(50))
    lines = texts(plan_svg(f"scan t ({columns})"))
    assert len(lines) > 5
    assert max(map(len, lines)) <= 44
    assert re.sub(r"\s+", " ", " ".join(lines)) == f"scan t ({columns})"


def test_colours_are_those_of_the_text_around() -> None:
    colours = re.findall(r'(?:fill|stroke)="([^"]*)"', plan_svg(JOIN))
    assert set(colours) <= {"currentColor", "none"}


@pytest.mark.parametrize("text", ["", "\n"])
def test_no_plan_is_an_empty_picture(text: str) -> None:
    assert boxes(plan_svg(text)) == []


def test_a_plan_shows_itself() -> None:
    plan = Plan(JOIN)
    assert repr(plan) == plan.text == JOIN.rstrip("\n")
    assert plan._repr_svg_() == plan._repr_html_() == plan.svg() == plan_svg(JOIN)


def test_a_view_has_a_plan(db: alluvium.Database) -> None:
    db.sql(
        """
        CREATE TABLE bid (auction BIGINT NOT NULL, price BIGINT NOT NULL);
        CREATE TABLE auction (id BIGINT PRIMARY KEY, seller VARCHAR);
        CREATE MATERIALIZED VIEW best AS
            SELECT seller, max(price) AS price FROM bid JOIN auction ON id = auction GROUP BY seller
        """
    )
    plan = db.plan("best")
    assert plan.text == db.sql("EXPLAIN VIEW best").text.rstrip("\n")  # type: ignore[union-attr]
    assert "scan bid" in plan.text
    assert len(boxes(plan.svg())) == len(plan.text.splitlines())


@pytest.mark.parametrize("name", ["Best", "a b", "b.c", 'q"q', "select"])
def test_the_name_of_a_view_may_have_any_letters(db: alluvium.Database, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    db.sql(f"CREATE TABLE n (n BIGINT); CREATE VIEW {quoted} AS SELECT n FROM n")
    (known,) = [relation.name for relation in db.relations() if relation.kind == "view"]
    assert "scan n" in db.plan(known).text


def test_a_view_in_a_schema_has_a_plan(db: alluvium.Database) -> None:
    db.sql("CREATE SCHEMA shop; CREATE TABLE shop.n (n BIGINT); CREATE VIEW shop.v AS SELECT n FROM shop.n")
    assert "scan" in db.plan("shop.v").text


def test_a_table_has_no_plan(db: alluvium.Database) -> None:
    db.sql("CREATE TABLE n (n BIGINT)")
    with pytest.raises(alluvium.Error, match="is a table, not a view"):
        db.plan("n")


def test_a_view_that_is_not_there_has_no_plan(db: alluvium.Database) -> None:
    with pytest.raises(alluvium.ProgrammingError):
        db.plan("nowhere")
