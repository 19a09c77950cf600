"""`tcpwhy fleet`."""

from __future__ import annotations

import argparse
import sys

from .._errors import Error, UsageError
from . import run


def main(words: list[str]) -> int:
    """`tcpwhy fleet` with these words; its exit status."""
    parser = argparse.ArgumentParser(
        prog="tcpwhy fleet",
        description="Explain the captures of many hosts, and write tables of what was found.",
        epilog="Example: tcpwhy fleet captures tables --master spark://head:7077; then: tcpwhy summary tables",
    )
    parser.add_argument("input", metavar="INPUT", help="a folder with a folder of captures for each host")
    parser.add_argument("output", metavar="OUTPUT", help="the folder of the tables")
    parser.add_argument("--master", help="a Spark cluster: spark://HOST:7077, local[8], sc://HOST:15002 [default: this machine alone]")
    parser.add_argument("--host", metavar="NAME", help="all captures are of this host")
    parser.add_argument("--again", action="store_true", help="write anew what has not changed")
    asked = parser.parse_args(words)
    try:
        outcome = run(asked.input, asked.output, master=asked.master, host=asked.host, again=asked.again)
    except (Error, OSError) as error:
        print(f"tcpwhy: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 3
    for problem in outcome.problems:
        print(f"tcpwhy: {problem.file}: {problem.problem}", file=sys.stderr)
    rows = ", ".join(f"{rows} {table}" for table, rows in outcome.rows.items()) or "no rows"
    same = f"; {len(outcome.unchanged)} unchanged" if outcome.unchanged else ""
    hosts = "1 host" if len(outcome.hosts) == 1 else f"{len(outcome.hosts)} hosts"
    print(f"wrote {asked.output}: {hosts}{same}: {rows}")
    return 0
