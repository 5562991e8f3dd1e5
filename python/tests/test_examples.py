"""The examples of the documentation run."""

import doctest
import importlib
import pkgutil

import pytest

import alluvium

MODULES = [
    "alluvium",
    *(f"alluvium.{module.name}" for module in pkgutil.iter_modules(alluvium.__path__) if module.name not in ("_alluvium", "__main__")),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    ran = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert ran.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    for name in ("", "._database", "._sink", "._source", "._function", ".dbapi"):
        tests = finder.find(importlib.import_module(f"alluvium{name}"))
        assert any(test.examples for test in tests), name
