"""The same on a cluster: cut where files lie, shuffled by host, joined in their order."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from .._errors import UsageError
from .files import File
from .host import Host, cut, in_order
from .places import keys

BATCH = 4 << 20
"""Bytes of pieces that go on together. Ours."""

MOST_TASKS = 10_000
"""Tasks that files are shared among. Ours: more of them tell a driver no more."""

ORDERED = "host string, number int, file string, told string"
PIECES = "task int, host string, shard int, number int, part int, files int, beside string, piece binary"
TOLD = "told string"


def there(hosts: dict[str | None, list[File]], output: str, master: str | None, spark: Any) -> list[dict[str, Any]]:
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
        raise UsageError("a cluster needs PySpark: pip install '.[fleet]'") from error
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
            told = json.loads(row["told"])
            problems[row["host"]] = told["problems"]
            for file, digest in zip(hosts[row["host"]], told["digests"], strict=True):
                file["digest"] = digest
        else:
            files.append((row["host"], row["number"], row["file"]))
    of = collections.Counter(host for host, _, _ in files)
    tasks = keys({host: sum(file["size"] for file in hosts[host]) for host in of}, min(len(of), MOST_TASKS))
    files = [(tasks[host], host, number, of[host], file) for host, number, file in files]
    # Nothing of these can be cut: what an earlier run wrote of them goes.
    done = [Host(host).write(output) for host in hosts if host not in of]
    if files:
        done += _cut_and_joined(spark, files, len(of), output)
    for one in done:
        one["problems"] = problems.get(one["host"], []) + one["problems"]
    return done


def _cut_and_joined(spark: Any, files: list[tuple[Any, ...]], hosts: int, output: str) -> list[dict[str, Any]]:
    cut = spark.createDataFrame(files, "task int, host string, number int, files int, file string")
    pieces = cut.repartition(min(len(files), MOST_TASKS)).mapInArrow(_cut_all, PIECES)
    together = pieces.repartition(min(hosts, MOST_TASKS), "task")
    sorted_ = together.sortWithinPartitions("host", "shard", "number", "part")
    joined = sorted_.mapInArrow(functools.partial(_join_all, output=output), TOLD)
    return [json.loads(row["told"]) for row in joined.collect()]


_SETTINGS = {
    # A piece has up to a megabyte.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.execution.arrow.maxBytesPerBatch": "64MB",
}


def _order_all(batches: Iterator[Any]) -> Iterator[Any]:
    """Hosts with their files -> files in their order."""
    for batch in batches:
        for row in batch.to_pylist():
            files = json.loads(row["files"])
            ordered, problems = in_order(files)
            rows: list[dict[str, Any]] = [
                {"host": row["host"], "number": number, "file": file["path"], "told": None}
                for number, file in enumerate(ordered)
            ]
            told = json.dumps({"problems": problems, "digests": [file.get("digest", "") for file in files]})
            rows.append({"host": row["host"], "number": None, "file": None, "told": told})
            yield _batch(rows, {"host": "string", "number": "int32", "file": "string", "told": "string"})


def _cut_all(batches: Iterator[Any]) -> Iterator[Any]:
    """Files -> their pieces."""
    numbers = dict.fromkeys(("shard", "number", "part", "files"), "int32")
    types = {"task": "int32", "host": "string", **numbers, "beside": "string", "piece": "binary"}
    for batch in batches:
        for row in batch.to_pylist():
            rows, held = [], 0
            for part, (shard, piece, beside) in enumerate(cut(row["file"])):
                rows.append(
                    {
                        "task": row["task"],
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
    rows = _sorted(row[1:] for row in _rows(batches))
    for host, those in itertools.groupby(rows, lambda row: row[0]):
        one = Host(host)
        for _, shard, number, _, _, beside, piece in those:
            if shard < 0:
                one.begin(number, beside, piece)
            else:
                one.push(number, piece)
        yield _batch([{"told": json.dumps(one.write(output))}], {"told": "string"})


Row = tuple[Any, ...]
"""A row of `PIECES`, without its task."""


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
