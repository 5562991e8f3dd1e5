"""The ``alluvium`` command."""

from __future__ import annotations

import sys

from . import _alluvium


def main() -> int:
    """Runs the command line with the arguments of the process, and returns the exit status."""
    return _alluvium.main(sys.argv[1:])
