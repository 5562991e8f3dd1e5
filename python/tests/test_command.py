"""The command line."""

import subprocess
import sys

import pytest

from alluvium import _alluvium, _command


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "alluvium", *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_the_module_is_the_command_line() -> None:
    ended = run("--format", "csv", "-c", "SELECT 1 + 1 AS two")
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (0, ["two", "2"], "")


@pytest.mark.parametrize(("arguments", "status"), [(["-c", "SELECT * FROM nowhere"], 1), (["--nonsense"], 2)])
def test_errors_are_exit_statuses(arguments: list[str], status: int) -> None:
    ended = run(*arguments)
    assert ended.returncode == status
    assert ended.stderr


def test_the_command_passes_its_arguments_on(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = []

    def main(arguments: list[str]) -> int:
        passed.append(arguments)
        return 3

    monkeypatch.setattr(_alluvium, "main", main)
    monkeypatch.setattr(sys, "argv", ["alluvium", "-c", "SELECT 1"])
    assert _command.main() == 3
    assert passed == [["-c", "SELECT 1"]]
