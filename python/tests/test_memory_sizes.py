"""Sizes of memory are those of the command line."""

from typing import Any

import pytest

import alluvium
from alluvium._size import parse


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("1", 1),
        ("300000000", 300_000_000),
        ("7b", 7),
        ("4k", 4 << 10),
        ("4KiB", 4 << 10),
        ("4kb", 4_000),
        ("512M", 512 << 20),
        ("512MiB", 512 << 20),
        ("1500MB", 1_500_000_000),
        ("2 GiB", 2 << 30),
        ("2g", 2 << 30),
        ("2GB", 2_000_000_000),
        ("1T", 1 << 40),
        ("1tib", 1 << 40),
        ("1TB", 10**12),
        ("00512M", 512 << 20),
        (str(2**64 - 1), 2**64 - 1),
    ],
)
def test_units_are_powers_of_1024_or_of_1000(text: str, bytes_: int) -> None:
    assert parse(text) == bytes_


@pytest.mark.parametrize("size", [1, 512 << 20, 2**64 - 1])
def test_a_number_is_a_number_of_bytes(size: int) -> None:
    assert parse(size) == size


def test_no_size_stays_none() -> None:
    assert parse(None) is None


@pytest.mark.parametrize(
    "wrong",
    ["", "M", "0", "0G", "-1", "1.5GB", "2X", "2 G B", " 1M", "1M ", "99999999999T", str(2**64), "9" * 10_000, "٣M", 0, -1, 2**64],
)
def test_what_is_no_size_is_refused(wrong: int | str) -> None:
    with pytest.raises(ValueError, match="expected a size such as 512M, 2GiB or 1500MB"):
        parse(wrong)


@pytest.mark.parametrize("wrong", [1.5, True, b"1M", ["1M"]])
def test_other_types_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="write a number of bytes, or a text"):
        parse(wrong)


@pytest.mark.parametrize("memory", ["256M", 256 << 20])
def test_a_database_takes_a_size(memory: int | str) -> None:
    with alluvium.memory(memory=memory) as db:
        assert db.sql("SELECT 1").fetchall() == [(1,)]


def test_a_database_refuses_a_wrong_size() -> None:
    with pytest.raises(ValueError, match=r"'1\.5GB'"):
        alluvium.memory(memory="1.5GB")
