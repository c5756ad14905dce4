"""The command ``onbeat``, with operators written in Python: ``python -m onbeat run pipeline.toml``."""

from __future__ import annotations

import sys

from onbeat import _onbeat


def main() -> int:
    """Runs the command with the arguments of the process."""
    return _onbeat.command(["onbeat", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
