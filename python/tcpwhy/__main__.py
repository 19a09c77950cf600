"""The command `tcpwhy`, as the module brings it."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> int:
    """Runs the command line of this process; its exit status."""
    # As every command has it: Python's own handler would wait until the command ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.argv[1:2] == ["fleet"]:
        from .fleet import command

        return command.main(sys.argv[2:])
    words = ["tcpwhy", *sys.argv[1:]]
    return _native.command(words, sys.executable, ["-I", "-m", "tcpwhy"])


if __name__ == "__main__":
    sys.exit(main())
