"""Captures of many hosts: what is cut and joined says the same as one run over the files, row for row."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.dataset
import pytest

import tcpwhy
from tcpwhy import fleet
from tcpwhy.fleet.known import Known
from tcpwhy.fleet.places import keys, murmur3, task_of

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"
HASHES = (933211791, -559580957, -2122148428)
KERNEL = [gzip.decompress(path.read_bytes()) for path in sorted((TESTDATA / "kernel").glob("*.server.pcap.gz"))]


def rotated(capture: bytes, files: int) -> list[bytes]:
    """A classic capture as so many files."""
    head, at, records = capture[:24], 24, []
    while at + 16 <= len(capture):
        end = at + 16 + struct.unpack_from("<I", capture, at + 8)[0]
        records.append(capture[at:end])
        at = end
    each = max(-(-len(records) // files), 1)
    return [head + b"".join(records[at : at + each]) for at in range(0, len(records), each)]


def shifted(capture: bytes, seconds: int) -> bytes:
    """The same capture at another time."""
    out, at = bytearray(capture), 24
    while at + 16 <= len(out):
        second, _, length, _ = struct.unpack_from("<IIII", out, at)
        struct.pack_into("<I", out, at, second + seconds)
        at += 16 + length
    return bytes(out)


@pytest.fixture(scope="session")
def captures(tmp_path_factory) -> Path:
    """Two hosts, each with connections that go on through several files, and damage."""
    folder = tmp_path_factory.mktemp("captures")
    for host, some in {"web1": KERNEL[:6], "web2": KERNEL[6:9]}.items():
        (folder / host).mkdir()
        for number, whole in enumerate(some):
            for part, content in enumerate(rotated(shifted(whole, 3600 * number), 3)):
                (folder / host / f"{number:02}.pcap{part}").write_bytes(content)
    cut = folder / "web1" / "99.pcap"
    cut.write_bytes(shifted(KERNEL[9], 90_000)[:-5])
    (folder / "web1" / "no capture.txt").write_bytes(b"nothing of the kind\n" * 20)
    (folder / "web2" / "empty.pcap").write_bytes(b"")
    shutil.copy(folder / "web2" / "00.pcap0", folder / "web2" / "copy.pcap")
    (folder / "web2" / "packed.pcap.gz").write_bytes(gzip.compress(shifted(KERNEL[10], 90_000)))
    return folder


def rows(folder: Path) -> dict[str, list[tuple]]:
    """All rows of all tables, in one order."""
    found = {}
    for name in tcpwhy.tables():
        files = sorted(str(path) for path in (folder / name).rglob("*.parquet")) if (folder / name).exists() else []
        hive = pyarrow.dataset.HivePartitioning(pyarrow.schema([("day", pyarrow.string()), ("host", pyarrow.string())]))
        read = pyarrow.dataset.dataset(files, partitioning=hive, partition_base_dir=str(folder / name)).to_table() if files else None
        found[name] = sorted(repr(row) for row in read.to_pylist()) if read is not None else []
    return found


def command(*words: object) -> subprocess.CompletedProcess:
    program = Path(sys.executable).with_name("tcpwhy")
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True)


@pytest.fixture(scope="session")
def expected(captures, tmp_path_factory) -> dict[str, list[tuple]]:
    """What the command writes, host by host."""
    folder = tmp_path_factory.mktemp("expected")
    for host in ("web1", "web2"):
        # A text among them, even without packets, would leave the command without a date for all.
        left_out = ("copy.pcap", "no capture.txt")
        files = [path for path in sorted((captures / host).iterdir()) if path.name not in left_out]
        command(*files, "--parquet", folder, "--host", host)
    found = rows(folder)
    assert {name: len(all) for name, all in found.items() if not all} == {}, "each table has rows"
    return found


def test_on_one_machine_every_row_is_the_command_s(captures, expected, tmp_path):
    outcome = fleet.run(captures, tmp_path)
    assert rows(tmp_path) == expected
    assert outcome.rows == {name: len(all) for name, all in expected.items()}
    assert outcome.hosts == ["web1", "web2"]
    told = {os.path.basename(problem.file): problem for problem in outcome.problems}
    assert sorted(told) == ["99.pcap", "copy.pcap", "empty.pcap", "no capture.txt"]
    assert "ends inside" in told["99.pcap"].problem
    assert told["copy.pcap"].problem.endswith("00.pcap0: left out")
    table = pyarrow.dataset.dataset(tmp_path / "problems").to_table().to_pylist()
    assert [row["file"] for row in table] == [problem.file for problem in outcome.problems]


def test_only_what_is_new_is_done_again(captures, tmp_path):
    folder = tmp_path / "captures"
    shutil.copytree(captures, folder)
    assert fleet.run(folder, tmp_path / "tables").hosts == ["web1", "web2"]
    again = fleet.run(folder, tmp_path / "tables")
    assert (again.hosts, again.unchanged) == ([], ["web1", "web2"])
    # Another name and time, the same bytes.
    (folder / "web1" / "00.pcap0").rename(folder / "web1" / "renamed")
    (folder / "web2" / "new.pcap").write_bytes(shifted(KERNEL[11], 99_000))
    third = fleet.run(folder, tmp_path / "tables")
    assert (third.hosts, third.unchanged) == (["web2"], ["web1"])
    assert fleet.run(folder, tmp_path / "tables", again=True).hosts == ["web1", "web2"]
    fresh = tmp_path / "fresh"
    fleet.run(folder, fresh)
    assert rows(tmp_path / "tables") == rows(fresh)


def test_captures_of_two_taps_are_no_rotation(captures, tmp_path):
    folder = tmp_path / "captures" / "web1"
    folder.mkdir(parents=True)
    (folder / "a.pcap").write_bytes(KERNEL[0])
    (folder / "b.pcap").write_bytes(shifted(KERNEL[0], 1))
    outcome = fleet.run(tmp_path / "captures", tmp_path / "tables")
    assert len(outcome.problems) == 1
    assert outcome.problems[0].file == str(folder / "b.pcap")
    assert "the same packets" in outcome.problems[0].problem
    assert outcome.rows["connections"] == 1


def test_a_file_that_begins_before_an_earlier_one_ends_is_told(tmp_path):
    folder = tmp_path / "captures" / "web1"
    folder.mkdir(parents=True)
    begins = lambda capture: struct.unpack_from("<I", capture, 24)[0]
    (folder / "a.pcap").write_bytes(KERNEL[0] + shifted(KERNEL[0], 100)[24:])
    (folder / "b.pcap").write_bytes(shifted(KERNEL[1], begins(KERNEL[0]) + 50 - begins(KERNEL[1])))
    (folder / "c.pcap").write_bytes(shifted(KERNEL[2], begins(KERNEL[0]) + 500 - begins(KERNEL[2])))
    outcome = fleet.run(tmp_path / "captures", tmp_path / "tables")
    assert [problem.file for problem in outcome.problems] == [str(folder / "b.pcap")]
    assert f"before {folder / 'a.pcap'} ends" in outcome.problems[0].problem


def test_a_listing_is_left_out_by_name(tmp_path):
    shutil.copy(TESTDATA / "articles" / "download-512k-rtt7ms.tcpdump.txt", tmp_path)
    outcome = fleet.run(tmp_path, tmp_path / "tables")
    assert [problem.file for problem in outcome.problems] == [str(tmp_path / "download-512k-rtt7ms.tcpdump.txt")]
    assert outcome.rows == {}


def test_a_capture_without_tcp_is_told_and_gives_no_rows(tmp_path):
    udp = bytes([0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]) + bytes(16)
    head = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    (tmp_path / "udp.pcap").write_bytes(head + struct.pack("<IIII", 1, 2, len(udp), len(udp)) + udp)
    outcome = fleet.run(tmp_path, tmp_path / "tables")
    assert [problem.problem for problem in outcome.problems] == ["it holds no TCP that could be read (1 not TCP over IP)"]
    assert outcome.rows == {}


def test_a_recording_with_what_was_attached_is_left_out_by_name(tmp_path):
    folder = tmp_path / "captures" / "web1"
    folder.mkdir(parents=True)
    recording = folder / "recording.pcapng"
    shutil.copy(TESTDATA / "cases" / "name-server-silent-recorded" / "recording.pcapng", recording)
    (folder / "rotated.pcap").write_bytes(KERNEL[0])
    outcome = fleet.run(tmp_path / "captures", tmp_path / "tables")
    assert [(problem.host, problem.file) for problem in outcome.problems] == [("web1", str(recording))]
    assert "explain it alone" in outcome.problems[0].problem
    assert outcome.rows["connections"] == 1


def refuses(folder: Path) -> None:
    """A host whose files can all not be read, and one with a pipe among them."""
    (folder / "web1").mkdir(parents=True)
    (folder / "web1" / "gone.pcap").symlink_to(folder / "target")
    (folder / "web2").mkdir()
    os.mkfifo(folder / "web2" / "pipe.pcap")
    (folder / "web2" / "sound.pcap").write_bytes(KERNEL[0])


def test_what_cannot_be_read_is_told_and_read_once_it_can(tmp_path):
    folder, tables = tmp_path / "captures", tmp_path / "tables"
    refuses(folder)
    outcome = fleet.run(folder, tables)
    told = {os.path.basename(problem.file): problem.problem for problem in outcome.problems}
    assert told == {"gone.pcap": "no such file or directory", "pipe.pcap": "it is no plain file: left out"}
    assert outcome.hosts == ["web1", "web2"] and outcome.rows["connections"] == 1
    assert fleet.run(folder, tables).hosts == []
    (folder / "target").write_bytes(KERNEL[1])
    assert fleet.run(folder, tables, host=None).hosts == [None, "web1"]


def test_a_file_that_was_refused_is_looked_at_again(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(KERNEL[0])
    found = path.stat()
    file = {"path": str(path), "size": found.st_size, "modified": found.st_mtime_ns}
    row = {"host": "web1", "file": str(path), "bytes": found.st_size, "modified_ns": found.st_mtime_ns, "digest": "x"}
    assert Known([row], []).has("web1", [dict(file)])
    assert not Known([{**row, "digest": ""}], []).has("web1", [dict(file)])


def test_a_folder_that_may_not_be_read_is_told(tmp_path, monkeypatch):
    folder = tmp_path / "captures"
    for host in ("web1", "web2"):
        (folder / host).mkdir(parents=True)
        (folder / host / "a.pcap").write_bytes(KERNEL[0])
    scandir, denied = os.scandir, [folder / "web1"]

    def refused(path):
        if Path(path) in denied:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        return scandir(path)

    # Root may read all folders.
    monkeypatch.setattr(os, "scandir", refused)
    outcome = fleet.run(folder, tmp_path / "tables")
    assert [(problem.host, problem.problem) for problem in outcome.problems] == [("web1", "cannot read the folder: permission denied")]
    assert outcome.rows["connections"] == 1
    denied[:] = [folder]
    with pytest.raises(tcpwhy.ReadError, match="permission denied"):
        fleet.run(folder, tmp_path / "tables")


def test_each_host_has_a_task_of_its_own_and_large_ones_do_not_meet():
    # What Spark 4 says of `SELECT hash(0), hash(1), hash(12345)`.
    assert [murmur3(number) for number in (0, 1, 12345)] == [value & 0xFFFFFFFF for value in HASHES]
    names = [f"web{number}" for number in range(100)]
    alone = keys(dict.fromkeys(names, 1), 100)
    assert sorted(task_of(number, 100) for number in alone.values()) == list(range(100))
    few = keys({"a": 9, "b": 8, "c": 4, "d": 4, None: 0}, 3)
    at = {name: task_of(number, 3) for name, number in few.items()}
    assert len({at["a"], at["b"], at["c"]}) == 3 and at["c"] == at["d"]


def test_what_makes_no_sense_is_refused(tmp_path):
    with pytest.raises(tcpwhy.UsageError, match="no files"):
        fleet.run(tmp_path, tmp_path / "tables")
    (tmp_path / "a host").mkdir()
    (tmp_path / "a host" / "a.pcap").write_bytes(b"")
    with pytest.raises(tcpwhy.UsageError, match="'a host'"):
        fleet.run(tmp_path, tmp_path / "tables")


def test_the_command_says_what_it_wrote_and_what_was_wrong(captures, tmp_path):
    ran = command("fleet", captures / "web2", tmp_path, "--host", "web2")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"wrote {tmp_path}: 1 host: ")
    assert "copy.pcap" in ran.stderr
    ran = command("summary", tmp_path, "--json")
    assert json.loads(ran.stdout), ran.stderr
    ran = command("fleet", tmp_path / "none", tmp_path)
    assert (ran.returncode, ran.stderr.strip()) == (3, f"tcpwhy: there is no file or folder {tmp_path / 'none'}")


@pytest.fixture(scope="session")
def sail():
    """A session of an engine that takes the same calls, without a JVM."""
    pysail = pytest.importorskip("pysail.spark", reason="pysail is not installed")
    from pyspark.sql import SparkSession

    server = pysail.SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    _, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    yield session
    session.stop()
    server.stop()


def test_on_another_engine_what_cannot_be_read_is_told(sail, tmp_path):
    refuses(tmp_path / "captures")
    here = fleet.run(tmp_path / "captures", tmp_path / "here")
    there = fleet.run(tmp_path / "captures", tmp_path / "there", spark=sail)
    key = lambda problem: problem.file
    assert sorted(there.problems, key=key) == sorted(here.problems, key=key)
    assert (there.hosts, there.rows) == (here.hosts, here.rows)
    assert rows(tmp_path / "there") == rows(tmp_path / "here")
    assert fleet.run(tmp_path / "captures", tmp_path / "there", spark=sail).hosts == []


def test_on_another_engine_every_row_is_the_command_s(captures, expected, sail, tmp_path):
    outcome = fleet.run(captures, tmp_path, spark=sail)
    assert rows(tmp_path) == expected
    assert sorted(os.path.basename(problem.file) for problem in outcome.problems) == [
        "99.pcap",
        "copy.pcap",
        "empty.pcap",
        "no capture.txt",
    ]
