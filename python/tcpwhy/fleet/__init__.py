"""Captures of many hosts, on one machine or on a Spark cluster: the same tables, row for row.

    >>> from tcpwhy import fleet
    >>> fleet.run("captures", "tables")                                  # on this machine
    >>> fleet.run("captures", "tables", master="spark://head:7077")      # on a cluster

`captures` has a folder for each host, with the files of one rotated capture in it. A file is cut into pieces where it lies;
pieces meet by host, and are analysed in their order there. `docs/scale.md` says what that costs, and why it is exact.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from .._errors import UsageError
from .files import File, absolute, listed
from .host import one
from .known import Known

__all__ = ["Outcome", "Problem", "run"]


@dataclass
class Problem:
    """What is wrong with a file. It stops nothing."""

    host: str | None
    file: str
    problem: str
    packet: int | None = None
    """The packet behind which nothing can be read, from 1."""
    offset: int | None = None
    """The bytes before it, unpacked."""


@dataclass
class Outcome:
    """What a run did."""

    rows: dict[str, int] = field(default_factory=dict)
    """Rows that were written, by table."""
    hosts: list[str | None] = field(default_factory=list)
    """Hosts whose tables were written."""
    unchanged: list[str | None] = field(default_factory=list)
    """Hosts whose captures are those of the run before."""
    problems: list[Problem] = field(default_factory=list)
    """What is wrong with files of the hosts that were written."""


def run(
    input: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    master: str | None = None,
    spark: Any = None,
    host: str | None = None,
    again: bool = False,
) -> Outcome:
    """Explains the captures in a folder, and writes tables as `tcpwhy FILES --parquet DIR --host HOST` does.

    Args:
        input: A folder with a folder for each host, or a file; all workers see it under this name. What has a scheme is read
            by `pyarrow.fs`: `s3://bucket/captures`.
        output: The folder of the tables; as `input`.
        master: The Spark cluster: `spark://head:7077`, `local[8]`, or `sc://head:15002` for Spark Connect. Without one, the
            files are explained here, on all cores.
        spark: A session that is there already, instead of `master`.
        host: All files are of this host. Otherwise a host is named as the first folder on a file's way.
        again: Write the tables of hosts anew whose captures have not changed.

    Raises:
        ReadError: `input` is not there.
        UsageError: There are no files, or a host's folder has a name that cannot be a part of a path.
    """
    input, output = absolute(input), absolute(output)
    hosts = listed(input, host)
    if not hosts:
        raise UsageError(f"there are no files in {input}", input)
    for name in hosts:
        if name is not None and not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", name):
            raise UsageError(f"{name!r} cannot be a part of a path: a host's name may have letters, digits, `.`, `_` and `-`", name)
    known = Known.read(output)
    outcome = Outcome()
    changed = {}
    for name, files in hosts.items():
        if again or not known.has(name, files):
            changed[name] = files
        else:
            outcome.unchanged.append(name)
    if changed:
        told = _here(changed, output) if master is None and spark is None else _there(changed, output, master, spark)
        for done in told:
            outcome.hosts.append(done["host"])
            outcome.problems += [Problem(done["host"], **problem) for problem in done["problems"]]
            for table, rows in done["rows"].items():
                outcome.rows[table] = outcome.rows.get(table, 0) + rows
        outcome.hosts.sort(key=lambda name: name or "")
        known.write(output, changed, [asdict(problem) for problem in outcome.problems])
    return outcome


def _here(hosts: dict[str | None, list[File]], output: str) -> Iterator[dict[str, Any]]:
    from concurrent.futures import ThreadPoolExecutor

    # Python's lock is released while a capture is read and while it is analysed.
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        yield from pool.map(functools.partial(one, output=output), hosts.items())


def _there(hosts: dict[str | None, list[File]], output: str, master: str | None, spark: Any) -> list[dict[str, Any]]:
    # What a cluster needs is loaded where one is asked for.
    from .spark import there

    return there(hosts, output, master, spark)
