"""The entry of `python -m holdfast run KEY -- COMMAND`."""

import sys

from .run import main

sys.exit(main(sys.argv[1:]))
