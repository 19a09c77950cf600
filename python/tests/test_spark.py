"""A real cluster whose executors are killed: every row is the command's.

It needs a JVM and PySpark as a whole (python/spark-packages.txt), so it runs where it is asked for:
`TCPWHY_SPARK=1 PYTHON -m pytest python/tests/test_spark.py`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tcpwhy import fleet

if os.environ.get("TCPWHY_SPARK") != "1":
    pytest.skip("TCPWHY_SPARK=1 asks for it", allow_module_level=True)

from pyspark import cloudpickle
from test_fleet import captures, expected, rows

__all__ = ["captures", "expected"]


def kill_executor_once(marker: Path) -> None:
    """Ends the executor that this worker belongs to, the first time."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    pid = os.getpid()
    while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(pid, signal.SIGKILL)


def test_a_killed_executor_changes_no_row(captures, expected, tmp_path, monkeypatch):
    # The workers do not have this file.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    in_map, in_reduce = tmp_path / "map", tmp_path / "reduce"
    from tcpwhy.fleet import spark

    cut, join = spark._cut_all, spark._join_all

    def cut_and_die(batches):
        for batch in cut(batches):
            yield batch
            kill_executor_once(in_map)

    def join_and_die(batches, output):
        def some():
            for batch in batches:
                yield batch
                kill_executor_once(in_reduce)

        yield from join(some(), output)

    monkeypatch.setattr(spark, "_cut_all", cut_and_die)
    monkeypatch.setattr(spark, "_join_all", join_and_die)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    outcome = fleet.run(captures, tmp_path / "tables", master="local-cluster[2,1,2048]")
    assert in_map.exists() and in_reduce.exists(), "both were killed"
    assert rows(tmp_path / "tables") == expected
    assert outcome.hosts == ["web1", "web2"]
