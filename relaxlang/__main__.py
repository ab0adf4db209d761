"""`python -m relaxlang` is `relaxc`."""

import sys

from relaxlang.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
