"""What tests share."""

import time
from collections.abc import Callable, Iterator

import hypothesis
import pytest
import serving

import alluvium

# Examples that have failed belong into tests, not into files.
hypothesis.settings.register_profile("alluvium", database=None, deadline=None)
hypothesis.settings.load_profile("alluvium")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "engine(reason): a test of what a database on a server does not have, or does in another way")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of a database run with an engine of the process, and with one on a server."""
    if "door" in metafunc.fixturenames:
        metafunc.parametrize("door", ["engine", "server"] if serving.PROGRAM else ["engine"])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what a server does not have."""

    def is_left_out(item: pytest.Item) -> bool:
        callspec = getattr(item, "callspec", None)
        if callspec is None or callspec.params.get("door") != "server":
            return False
        return item.get_closest_marker("engine") is not None

    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item)]


@pytest.fixture
def db(door: str) -> Iterator[alluvium.Database]:
    """A database without relations, which is closed after the test."""
    if door == "engine":
        with alluvium.memory(history=1_000) as database:
            yield database
    else:
        with serving.Server() as server, alluvium.connect(server.url) as database:
            yield database


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Waits until something holds."""

    def wait(holds: Callable[[], object]) -> None:
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end, "it has not come to hold within a minute"
            time.sleep(0.01)

    return wait
