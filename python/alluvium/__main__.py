"""The command line: ``python -m alluvium``."""

import sys

from ._command import main

sys.exit(main())
