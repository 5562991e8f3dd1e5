"""The reference says what docstrings say."""

import importlib.util
import pathlib
import re
from types import ModuleType

import pytest

import alluvium
from alluvium import dbapi

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/python.md"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "python/reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_as_printed(reference: ModuleType) -> None:
    assert PAGE.read_text() == reference.page(), "print it again: python reference.py > ../docs/reference/python.md"


def test_everything_is_on_the_page(reference: ModuleType) -> None:
    text = PAGE.read_text()
    on_page = {name for names in reference.SECTIONS.values() for name in names}
    for name in alluvium.__all__:
        assert name in on_page or name in ("Warning", "__version__") or f"- `{name}`: " in text, name
    constants = {"Binary", "Date", "Time", "Timestamp", "apilevel"}
    for name in dbapi.__all__:
        described = name in reference.INTERFACE or name in alluvium.__all__ or name in constants
        assert described or re.search(rf"^\| `{name}\b", text, re.MULTILINE), name


def test_everything_has_a_description(reference: ModuleType) -> None:
    text = PAGE.read_text()
    assert not re.search(r"\| *\|$", re.sub(r"^\| \w+ \|( type \|)? \|$", "", text, flags=re.MULTILINE), re.MULTILINE)
    for heading in re.finditer(r"^(####? .*)\n\n(?:`.*`\n\n)?(.*)$", text, re.MULTILINE):
        assert heading[2] and not heading[2].startswith("#"), heading[1]


def test_links_lead_somewhere(reference: ModuleType) -> None:
    text = PAGE.read_text()
    anchors = [reference.anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    assert len(set(anchors)) == len(anchors)
    assert {link for link in re.findall(r"\]\(#([^)]*)\)", text)} <= set(anchors)
    for link in re.findall(r"\]\((?!#|https:)([^)#]*)[^)]*\)", text):
        assert (PAGE.parent / link).exists(), link
