"""What tests share."""

import time
from collections.abc import Callable, Iterator

import hypothesis
import pytest

import alluvium

# Examples that have failed belong into tests, not into files.
hypothesis.settings.register_profile("alluvium", database=None, deadline=None)
hypothesis.settings.load_profile("alluvium")


@pytest.fixture
def db() -> Iterator[alluvium.Database]:
    """A database in memory, which is closed after the test."""
    with alluvium.memory(history=1_000) as database:
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
