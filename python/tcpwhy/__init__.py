"""Why a TCP transfer took as long as it did, and what would make it faster.

    >>> import tcpwhy
    >>> report = tcpwhy.explain("slow.pcap")
    >>> print(report)                       # the first screen, as the command prints it
    >>> report[0].answer                    # what took the time, in a few sentences
    >>> report.findings.to_polars()         # tables: connections, transfers, requests, limits, rounds, ..

Tables hand their columns on by Arrow's PyCapsule interface: polars, pyarrow, pandas and duckdb take them as they are,
without a copy. All times count in nanoseconds; `docs/tables.md` and `Table.columns` say what each column means.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from . import _native
from ._errors import Error, ReadError, Remark, UsageError
from ._report import Column, Connection, Report, Table, tables

try:
    __version__ = version("tcpwhy")
except PackageNotFoundError:  # not installed: a checkout
    __version__ = "0"

__all__ = [
    "Column",
    "Connection",
    "Error",
    "ReadError",
    "Remark",
    "Report",
    "Table",
    "UsageError",
    "check",
    "explain",
    "predict",
    "tables",
    "whatif",
]

Path = str | os.PathLike[str]
Value = str | int | float | Iterable[str | int | float]


def explain(
    paths: Path | Iterable[Path],
    *,
    with_: Path | Iterable[Path] = (),
    rate: str | None = None,
    filter: str | None = None,
    connection: int | None = None,
    start: str | None = None,
    end: str | None = None,
    anonymize: bool = False,
    predict: bool = True,
    graphs: bool = False,
    threads: int | None = None,
) -> Report:
    """Explains what the transfers in a capture waited for.

    Args:
        paths: A capture (pcap, pcapng or a packet listing, plain or packed), or the files of one rotated capture.
        with_: What the hosts recorded themselves: `ss -tin`, `TCP_INFO`, `nstat`, `iperf3 -J`, `strace`.
        rate: The path's rate, if you know it: "100mbit".
        filter: Only matching connections: "host 10.0.0.1 and port 80".
        connection: Only the connection of this number.
        start: From this time on: "+1.5s" after the first packet, a time of day, or RFC 3339.
        end: Up to this time.
        anonymize: Replace all addresses, each consistently.
        predict: Run the model of Linux TCP for what is advised.
        graphs: Keep what is drawn of packets, for `Connection.graphs`.
        threads: Analyse on this many threads; all cores if None.

    Raises:
        ReadError: Nothing could be read. A capture that is damaged further on is explained up to there: `Report.captures`
            has the error, and a `Remark` warns.
        UsageError: What was asked for makes no sense.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    words: list[str] = []
    words += _several("--with", with_)
    words += _one("--rate", rate) + _one("--filter", filter) + _one("--connection", connection)
    words += _one("--from", start) + _one("--to", end) + _one("--threads", threads)
    words += ["--anonymize"] if anonymize else []
    words += [] if predict else ["--no-predict"]
    files = _paths(paths)
    if not files:
        raise UsageError("nothing to read: name a capture")
    # As the JSON has it: all connections, each with all that is known of it.
    report, remarks = _native.explain(["--json", *words, "--", *files], graphs)
    _warn(remarks)
    return Report(report)


def predict(scenario: Path | None = None, **settings: Value) -> dict[str, Any]:
    """Predicts how long a transfer takes, by the model of Linux TCP.

    `predict(size="512KiB", rtt="7ms", initcwnd=[10, 20, 100])` runs every combination. Settings are those of
    `tcpwhy predict --help` (size, rtt, rate, loss, initcwnd, kernel) and every key of a scenario, its dots written as two
    underscores: `server__route__congctl="bbr"`.

    Returns:
        What `tcpwhy predict --json` prints; `["runs"]` has one entry for each combination.
    """
    words = [os.fspath(scenario)] if scenario is not None else []
    for key, value in settings.items():
        typed = _typed(value)
        if key in _PREDICT:
            words += [f"--{key}={typed}"]
        else:
            words += [f"--set={key.replace('__', '.')}={typed}"]
    answer, remarks = _native.predict(words)
    _warn(remarks)
    return json.loads(answer)


_PREDICT = ("size", "rtt", "rate", "loss", "initcwnd", "kernel")


def whatif(
    path: Path,
    *,
    connection: int | None = None,
    set: Mapping[str, Value] | None = None,
) -> dict[str, Any]:
    """What a captured transfer would have taken with another setting.

    Without `set`, every remedy that fits is tried. `set={"initcwnd": [20, 40], "client.rmem": "16MiB"}` changes several
    together; lists are tried one by one.

    Returns:
        What `tcpwhy whatif --json` prints; `["changes"]` has one entry for each change, with its range in nanoseconds.
    """
    words = _one("--connection", connection)
    for key, value in (set or {}).items():
        words += [f"--set={key}={_typed(value)}"]
    answer, remarks = _native.whatif([*words, "--json", "--", os.fspath(path)])
    _warn(remarks)
    return json.loads(answer)


def check(path: Path | None = None, *, seconds: float = 0.0) -> list[dict[str, Any]]:
    """Whether hosts are set up for fast TCP, and what their counters say goes wrong.

    Args:
        path: What a host's tools printed (ss, nstat, sysctl, ip, ethtool, ..) or a saved snapshot; this host if None.
        seconds: Look at this host twice, so long apart: only then is it known which counters grow.

    Returns:
        What `tcpwhy check --json` prints, one entry for each host.
    """
    words = [f"--for={seconds}s"] if seconds > 0 else []
    if path is not None:
        words = ["--", os.fspath(path)]
    return [json.loads(answer) for answer in _native.check(words)]


def _paths(paths: Path | Iterable[Path]) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


def _several(flag: str, paths: Path | Iterable[Path]) -> list[str]:
    return [f"{flag}={path}" for path in _paths(paths)]


def _one(flag: str, value: object) -> list[str]:
    return [] if value is None else [f"{flag}={value}"]


def _typed(value: Value) -> str:
    if isinstance(value, (str, int, float)):
        return str(value)
    return ",".join(str(each) for each in value)


def _warn(remarks: list[str]) -> None:
    for remark in remarks:
        warnings.warn(remark, Remark, stacklevel=3)
