"""Captures of many hosts, on one machine or on a Spark cluster: the same tables, row for row.

    >>> from tcpwhy import fleet
    >>> fleet.run("captures", "tables")                                  # on this machine
    >>> fleet.run("captures", "tables", master="spark://head:7077")      # on a cluster

`captures` has a folder for each host, with the files of one rotated capture in it. A file is cut into pieces where it lies;
pieces meet by host, and are analysed in their order there. `docs/scale.md` says what that costs, and why it is exact.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import hashlib
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from . import _native
from ._errors import Error, UsageError

__all__ = ["Outcome", "Problem", "run"]

RUN = "fleet"
"""The name of a host's files, so that a later run replaces them."""

END = 64 << 10
"""Bytes at a file's start and end that tell it from others, with its length. Ours."""

BATCH = 4 << 20
"""Bytes of pieces that go on together. Ours."""

MOST_TASKS = 10_000
"""Tasks that files are shared among. Ours: more of them tell a driver no more."""


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
        UsageError: There are no files, or a host's folder has a name that cannot be a part of a path.
    """
    input, output = _absolute(input), _absolute(output)
    hosts = _listed(input, host)
    if not hosts:
        raise UsageError(f"there are no files in {input}", input)
    for name in hosts:
        if name is not None and not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", name):
            raise UsageError(f"{name!r} cannot be a part of a path: a host's name may have letters, digits, `.`, `_` and `-`", name)
    known = _Known.read(output)
    outcome = Outcome()
    changed = {}
    for name, files in hosts.items():
        if again or not known.has(name, files):
            changed[name] = files
        else:
            outcome.unchanged.append(name)
    if changed:
        told = _here(changed, output) if master is None and spark is None else _there(changed, output, master, spark)
        for one in told:
            outcome.hosts.append(one["host"])
            outcome.problems += [Problem(one["host"], **problem) for problem in one["problems"]]
            for table, rows in one["rows"].items():
                outcome.rows[table] = outcome.rows.get(table, 0) + rows
        outcome.hosts.sort(key=lambda name: name or "")
        known.write(output, changed, outcome.problems)
    return outcome


# What there is


def _absolute(path: str | os.PathLike[str]) -> str:
    path = os.fspath(path)
    if path.startswith("file://"):
        path = path.removeprefix("file://")
    return path if "://" in path else os.path.abspath(path)


def _remote(path: str) -> tuple[Any, str] | None:
    """The file system and the path there of what is not a plain path."""
    if "://" not in path:
        return None
    from pyarrow import fs

    # Hadoop's names of S3.
    for name in ("s3a://", "s3n://"):
        if path.startswith(name):
            path = "s3://" + path.removeprefix(name)
    return fs.FileSystem.from_uri(path)


File = dict[str, Any]


def _listed(input: str, host: str | None) -> dict[str | None, list[File]]:
    """The files by their hosts."""
    hosts: dict[str | None, list[File]] = {}
    for path, inside, size, modified in _files(input):
        folders = inside.split("/")[:-1]
        name = host if host is not None else folders[0] if folders else None
        hosts.setdefault(name, []).append({"path": path, "size": size, "modified": modified})
    return hosts


def _files(input: str) -> Iterator[tuple[str, str, int, int]]:
    """Each file: its path, the same inside of the folder, its length, and when it was changed. Those whose names begin with
    a dot or `_` are none of ours, as Spark has it."""
    remote = _remote(input)
    if remote is not None:
        from pyarrow import fs

        system, root = remote
        scheme = input.split("://", 1)[0] + "://"
        infos = system.get_file_info(fs.FileSelector(root, recursive=True))
        for info in sorted(infos, key=lambda info: info.path):
            inside = info.path[len(root) :].lstrip("/")
            if info.type == fs.FileType.File and not _is_hidden(inside):
                yield scheme + info.path, inside, info.size, info.mtime_ns or 0
        return
    if not os.path.isdir(input):
        yield _stat(input, os.path.basename(input))
        return
    for folder, folders, names in os.walk(input):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, input).replace(os.sep, "/")
            if not _is_hidden(inside):
                yield _stat(path, inside)


def _is_hidden(inside: str) -> bool:
    return any(part.startswith((".", "_")) for part in inside.split("/"))


def _stat(path: str, inside: str) -> tuple[str, str, int, int]:
    try:
        found = os.stat(path)
    except OSError:  # reading it tells why
        return path, inside, -1, 0
    return path, inside, found.st_size, found.st_mtime_ns


@contextlib.contextmanager
def _local(path: str, most: int | None = None) -> Iterator[str]:
    """A file that can be opened here, with the first `most` bytes of that at `path` at least."""
    remote = _remote(path)
    if remote is None:
        yield path
        return
    system, inside = remote
    with tempfile.NamedTemporaryFile(suffix=os.path.basename(path)) as spool:
        with system.open_input_stream(inside, compression=None) as source:
            if most is None:
                shutil.copyfileobj(source, spool, BATCH)
            else:
                spool.write(source.read(most))
        spool.flush()
        yield spool.name


class _Known:
    """What runs before found: the tables `files` and `problems`."""

    def __init__(self, files: list[dict[str, Any]], problems: list[dict[str, Any]]) -> None:
        self.files = files
        self.problems = problems

    @classmethod
    def read(cls, output: str) -> _Known:
        return cls(_read_rows(output, "files"), _read_rows(output, "problems"))

    def has(self, host: str | None, files: list[File]) -> bool:
        known = {(row["file"], row["bytes"], row["modified_ns"]) for row in self.files if row["host"] == host}
        if not known:
            return False
        here = {(file["path"], file["size"], file["modified"]) for file in files}
        if here == known:
            return True
        # Names and times may differ where the bytes are the same.
        told = sorted(row["digest"] for row in self.files if row["host"] == host and row["digest"])
        for file in files:
            file["digest"] = _digest(file)
        return sorted({file["digest"] for file in files if file["digest"]}) == sorted(set(told))

    def write(self, output: str, changed: dict[str | None, list[File]], problems: list[Problem]) -> None:
        files = [row for row in self.files if row["host"] not in changed]
        for host, those in changed.items():
            for file in those:
                digest = file.get("digest") or _digest(file)
                files.append(
                    {
                        "host": host,
                        "file": file["path"],
                        "bytes": file["size"],
                        "modified_ns": file["modified"],
                        "digest": digest,
                    }
                )
        told = [row for row in self.problems if row["host"] not in changed] + [asdict(each) for each in problems]
        # What is wrong is told before it is taken for done.
        _write_rows(output, "problems", told)
        _write_rows(output, "files", files)


def _digest(file: File) -> str:
    """The same of files with the same bytes: of their lengths, starts and ends. Empty of what cannot be read."""
    digest = hashlib.blake2b(str(file["size"]).encode(), digest_size=16)
    try:
        remote = _remote(file["path"])
        with open(file["path"], "rb") if remote is None else remote[0].open_input_file(remote[1]) as opened:
            digest.update(opened.read(END))
            if file["size"] > END:
                opened.seek(max(file["size"] - END, 0))
                digest.update(opened.read(END))
    except OSError:
        return ""
    return digest.hexdigest()


def _schemas() -> dict[str, Any]:
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    return {
        "files": pa.schema(
            [("host", text), ("file", text), ("bytes", number), ("modified_ns", number), ("digest", text)]
        ),
        "problems": pa.schema(
            [("host", text), ("file", text), ("problem", text), ("packet", number), ("offset", number)]
        ),
    }


def _read_rows(output: str, table: str) -> list[dict[str, Any]]:
    from pyarrow import fs
    from pyarrow import parquet as pq

    remote = _remote(output)
    system, root = remote if remote is not None else (fs.LocalFileSystem(), output)
    try:
        return pq.read_table(f"{root}/{table}/{RUN}.parquet", filesystem=system).to_pylist()
    except FileNotFoundError:
        return []


def _write_rows(output: str, table: str, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    from pyarrow import fs
    from pyarrow import parquet as pq

    remote = _remote(output)
    system, root = remote if remote is not None else (fs.LocalFileSystem(), output)
    system.create_dir(f"{root}/{table}", recursive=True)
    # Whole under its name, or not at all.
    beside = f"{root}/{table}/.{RUN}.part"
    pq.write_table(pa.Table.from_pylist(rows, schema=_schemas()[table]), beside, filesystem=system)
    system.move(beside, f"{root}/{table}/{RUN}.parquet")


# What is done with a host's files


def _in_order(files: list[File]) -> tuple[list[File], list[dict[str, Any]]]:
    """A host's files in the order in which they were begun, without copies; what is to be said of those."""
    problems = []
    kept: dict[str, File] = {}
    for file in files:
        digest = file["digest"] = file.get("digest") or _digest(file)
        if digest and digest in kept:
            problems.append({"file": file["path"], "problem": f"it is a copy of {kept[digest]['path']}: left out"})
        else:
            kept[digest or file["path"]] = file
    left = list(kept.values())
    with contextlib.ExitStack() as open_files:
        local = {file["path"]: open_files.enter_context(_local(file["path"], 4 * BATCH)) for file in left}
        back = {name: path for path, name in local.items()}
        while True:
            order, same = _native.in_order([local[file["path"]] for file in left])
            if same is None:
                return [left[at] for at in order], problems
            second, why = same
            for name, path in back.items():
                why = why.replace(name, path)
            problems.append({"file": back[second], "problem": f"{why}; left out"})
            left = [file for file in left if local[file["path"]] != second]


def _wrong(path: str, told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What is wrong with a capture of which this is known."""
    capture = told["capture"]
    damage = capture["damage"] or {}
    place = {"packet": damage.get("packet"), "offset": damage.get("offset")}
    if told["is_whole"]:
        why = "a packet listing, or a recording with what was attached to it, is no part of a rotated capture: explain it alone"
        yield {"file": path, "problem": f"{why}; left out"}
    elif capture["error"] is not None:
        yield {"file": path, "problem": capture["error"], **place}
    elif capture["packets"] == 0:
        yield {"file": path, "problem": "it holds no packets"}
    for quality in capture["quality"]:
        if quality["kind"] == "cut_short":
            yield {"file": path, "problem": quality["note"]}


def _cut(path: str) -> Iterator[tuple[int, bytes, str]]:
    """The pieces of a capture, each with its shard; then, of shard -1, what is beside them."""
    with _local(path) as local:
        cutting = _native.cut(local)
        for shard, piece in cutting:
            yield shard, piece, ""
        beside, heard = cutting.beside()
    told = json.loads(beside)
    told["capture"]["source"] = path
    yield -1, heard, json.dumps(told)


class _Host:
    """The analysis of one host: captures in their order, then their pieces, in order for each shard."""

    def __init__(self, host: str | None) -> None:
        self.host = host
        self.joining = _native.Joining()
        self.problems: list[dict[str, Any]] = []
        self.places: dict[int, int] = {}
        """The place of a file among those that are joined."""

    def begin(self, number: int, beside: str, heard: bytes) -> None:
        told = json.loads(beside)
        self.problems += _wrong(told["capture"]["source"], told)
        if not told["is_whole"]:
            self.places[number] = len(self.places)
            self.joining.begin(beside, heard)

    def push(self, number: int, piece: bytes) -> None:
        if number in self.places:
            self.joining.push(self.places[number], piece)

    def write(self, output: str) -> dict[str, Any]:
        remote = _remote(output)
        if remote is None:
            _, rows = self.joining.write(output, RUN, self.host)
        else:
            with tempfile.TemporaryDirectory() as folder:
                files, rows = self.joining.write(folder, RUN, self.host)
                _move(remote, folder, [os.fspath(file) for file in files], self.host)
        return {"host": self.host, "rows": rows, "problems": self.problems}


def _move(remote: tuple[Any, str], folder: str, files: list[str], host: str | None) -> None:
    """Files to their places elsewhere; those that an earlier run left there go."""
    from pyarrow import fs

    system, root = remote
    new = set()
    for file in files:
        inside = os.path.relpath(file, folder)
        place = f"{root}/{inside}"
        system.create_dir(os.path.dirname(place), recursive=True)
        beside = f"{os.path.dirname(place)}/.{os.path.basename(place)}.part"
        with open(file, "rb") as source, system.open_output_stream(beside, compression=None) as to:
            shutil.copyfileobj(source, to, BATCH)
        system.move(beside, place)
        new.add(place)
    own = f"/host={host if host is not None else '__HIVE_DEFAULT_PARTITION__'}/{RUN}-"
    for table in {os.path.relpath(file, folder).split(os.sep)[0] for file in files} | {name for name, _, _ in _native.tables()}:
        for info in system.get_file_info(fs.FileSelector(f"{root}/{table}", allow_not_found=True, recursive=True)):
            if info.type == fs.FileType.File and own in info.path and info.path not in new:
                system.delete_file(info.path)


# On this machine


def _here(hosts: dict[str | None, list[File]], output: str) -> Iterator[dict[str, Any]]:
    from concurrent.futures import ThreadPoolExecutor

    # Python's lock is released while a capture is read and while it is analysed.
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        yield from pool.map(functools.partial(_one, output=output), hosts.items())


def _one(item: tuple[str | None, list[File]], output: str) -> dict[str, Any]:
    host, files = item
    ordered, problems = _in_order(files)
    one = _Host(host)
    for number, file in enumerate(ordered):
        pieces = []
        for shard, piece, beside in _cut(file["path"]):
            if shard < 0:
                one.begin(number, beside, piece)
            else:
                pieces.append(piece)
        for piece in pieces:
            one.push(number, piece)
    told = one.write(output)
    told["problems"] = problems + told["problems"]
    return told


# On a cluster


ORDERED = "host string, number int, file string, problems string"
PIECES = "host string, shard int, number int, part int, files int, beside string, piece binary"
TOLD = "told string"


def _there(hosts: dict[str | None, list[File]], output: str, master: str | None, spark: Any) -> list[dict[str, Any]]:
    session = spark if spark is not None else _session(master)
    try:
        return _on(session, hosts, output)
    finally:
        if spark is None:
            session.stop()


def _session(master: str | None) -> Any:
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise UsageError("a cluster needs PySpark: pip install 'tcpwhy[fleet]'") from error
    builder = SparkSession.builder.appName("tcpwhy")
    if master is not None and master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    # `local-cluster` starts workers from there.
    os.environ.setdefault("SPARK_HOME", os.path.dirname(pyspark.__file__))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return builder.master(master).getOrCreate()


def _on(spark: Any, hosts: dict[str | None, list[File]], output: str) -> list[dict[str, Any]]:
    for name, value in _SETTINGS.items():
        # Other engines know other settings.
        with contextlib.suppress(Exception):
            spark.conf.set(name, value)
    rows = [(host, json.dumps(files)) for host, files in hosts.items()]
    asked = spark.createDataFrame(rows, "host string, files string").repartition(min(len(rows), MOST_TASKS))
    ordered = asked.mapInArrow(_order_all, ORDERED).collect()
    problems: dict[str | None, list[dict[str, Any]]] = {}
    files = []
    for row in ordered:
        if row["file"] is None:
            problems[row["host"]] = json.loads(row["problems"])
        else:
            files.append((row["host"], row["number"], row["file"]))
    of = collections.Counter(host for host, _, _ in files)
    files = [(host, number, of[host], file) for host, number, file in files]
    if not files:
        return []
    cut = spark.createDataFrame(files, "host string, number int, files int, file string").repartition(min(len(files), MOST_TASKS))
    pieces = cut.mapInArrow(_cut_all, PIECES)
    together = pieces.repartition(min(len(hosts), MOST_TASKS), "host")
    sorted_ = together.sortWithinPartitions("host", "shard", "number", "part")
    told = [json.loads(row["told"]) for row in sorted_.mapInArrow(functools.partial(_join_all, output=output), TOLD).collect()]
    for one in told:
        one["problems"] = problems.get(one["host"], []) + one["problems"]
    return told


_SETTINGS = {
    # A piece has up to a megabyte.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.execution.arrow.maxBytesPerBatch": "64MB",
}


def _order_all(batches: Iterator[Any]) -> Iterator[Any]:
    """Hosts with their files -> files in their order."""
    for batch in batches:
        for row in batch.to_pylist():
            ordered, problems = _in_order(json.loads(row["files"]))
            rows: list[dict[str, Any]] = [
                {"host": row["host"], "number": number, "file": file["path"], "problems": None}
                for number, file in enumerate(ordered)
            ]
            rows.append({"host": row["host"], "number": None, "file": None, "problems": json.dumps(problems)})
            yield _batch(rows, {"host": "string", "number": "int32", "file": "string", "problems": "string"})


def _cut_all(batches: Iterator[Any]) -> Iterator[Any]:
    """Files -> their pieces."""
    numbers = dict.fromkeys(("shard", "number", "part", "files"), "int32")
    types = {"host": "string", **numbers, "beside": "string", "piece": "binary"}
    for batch in batches:
        for row in batch.to_pylist():
            rows, held = [], 0
            for part, (shard, piece, beside) in enumerate(_cut(row["file"])):
                rows.append(
                    {
                        "host": row["host"],
                        "shard": shard,
                        "number": row["number"],
                        "part": part,
                        "files": row["files"],
                        "beside": beside,
                        "piece": piece,
                    }
                )
                held += len(piece)
                if held >= BATCH:
                    yield _batch(rows, types)
                    rows, held = [], 0
            if rows:
                yield _batch(rows, types)


def _join_all(batches: Iterator[Any], output: str) -> Iterator[Any]:
    """Pieces, sorted -> what was written."""
    rows = _sorted(_rows(batches))
    for host, those in itertools.groupby(rows, lambda row: row[0]):
        one = _Host(host)
        for _, shard, number, _, _, beside, piece in those:
            if shard < 0:
                one.begin(number, beside, piece)
            else:
                one.push(number, piece)
        yield _batch([{"told": json.dumps(one.write(output))}], {"told": "string"})


Row = tuple[Any, ...]
"""A row of `PIECES`."""


def _rows(batches: Iterator[Any]) -> Iterator[Row]:
    for batch in batches:
        columns = [batch.column(at) for at in range(batch.num_columns)]
        for row in zip(*columns, strict=True):
            yield tuple(value.as_py() for value in row)


def _order(row: Row) -> tuple[Any, ...]:
    host, shard, number, part = row[:4]
    return host or "", shard, number, part


def _sorted(rows: Iterator[Row]) -> Iterator[Row]:
    """Rows in the order that was asked for. Sail leaves a sort out before a map: where a piece comes before all files of
    its host were begun, the rest is put in order here, in memory."""
    last: Row | None = None
    begun: list[Row] = []
    """Files of a host that were begun, until all of them are."""
    for row in rows:
        is_piece, is_new = row[1] >= 0, last is None or last[0] != row[0]
        if is_piece and (is_new or begun) or is_new and begun:
            yield from sorted(itertools.chain(begun, [row], rows), key=_order)
            return
        if last is not None and _order(last) > _order(row):
            raise RuntimeError("the engine gave the pieces of a host in no order")
        last = row
        if is_piece:
            yield row
            continue
        begun.append(row)
        if len(begun) == row[4]:
            yield from begun
            begun = []
    yield from begun


def _batch(rows: list[dict[str, Any]], types: dict[str, str]) -> Any:
    import pyarrow as pa

    kinds = {"string": pa.string(), "int32": pa.int32(), "binary": pa.binary()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in types.items()])
    return pa.RecordBatch.from_pylist(rows, schema=schema)


# The command


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
