"""The code of the guide and of the package's page runs, and returns what they say."""

import ast
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "docs/guide/python.md", ROOT / "python/README.md", ROOT / "README.md"]

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What an expression returns, in a comment after it.
_RESULT = re.compile(r"  # → (.*)$")


def blocks(page: pathlib.Path) -> Iterator[tuple[int, str]]:
    """The blocks of a page, and the lines that they stand in."""
    text = page.read_text()
    for block in _BLOCK.finditer(text):
        yield text.count("\n", 0, block.start(1)), block[1]


class Checks(ast.NodeTransformer):
    """Makes each expression with a result a check of this result."""

    def __init__(self, code: str) -> None:
        self.lines = code.splitlines()
        self.count = 0

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:  # noqa: N802 (its name in ast)
        result = _RESULT.search(self.lines[(node.end_lineno or 1) - 1])
        if result is None:
            return node
        self.count += 1
        call = ast.Call(ast.Name("_check", ast.Load()), [node.value, ast.Constant(result[1])], [])
        return ast.copy_location(ast.Expr(call), node)


def check(value: object, expected: str) -> None:
    assert repr(value) == expected


def run(page: pathlib.Path) -> int:
    """Runs all blocks of a page in one namespace; returns their number."""
    namespace: dict[str, Any] = {"__name__": "__main__", "_check": check}
    count = 0
    for line, code in blocks(page):
        checks = Checks(code)
        tree = ast.increment_lineno(ast.fix_missing_locations(checks.visit(ast.parse(code))), line)
        exec(compile(tree, str(page), "exec"), namespace)
        assert checks.count == code.count("# →"), f"{page}:{line}: a result is not that of an expression"
        count += 1
    return count


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_all_blocks_run(page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("pandas", "polars", "pyarrow"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    assert run(page) > 0


def test_a_wrong_result_is_noticed(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nif True:\n    1 + 1  # → 3\n```\n")
    with pytest.raises(AssertionError):
        run(page)


def test_the_error_of_the_guide_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    import alluvium

    shown = re.findall(r"^```text\n(.*?)^```$", PAGES[0].read_text(), re.MULTILINE | re.DOTALL)
    with alluvium.memory() as db:
        db.sql("CREATE TABLE bid (auction BIGINT NOT NULL, price BIGINT NOT NULL)")
        db.sql("CREATE MATERIALIZED VIEW best AS SELECT auction, COUNT(*) AS bids, MAX(price) AS price FROM bid GROUP BY auction")
        with pytest.raises(alluvium.ProgrammingError) as raised:
            db.sql("SELECT pric FROM bid")
        assert shown == [f"{raised.value}\n", f"{db.plan('best')}\n"]
