"""The module as it is used: real captures, real data frames, real exceptions."""

from __future__ import annotations

import gzip
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pytest

import tcpwhy

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"
LISTING = TESTDATA / "articles" / "download-512k-rtt7ms.tcpdump.txt"
CAPTURES = sorted(path for path in (TESTDATA / "kernel").glob("*.pcap*") if ".client." not in path.name)


def command(*words: object, **more) -> subprocess.CompletedProcess:
    program = Path(sys.executable).with_name("tcpwhy")
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, **more)


def test_a_report_says_what_the_command_says():
    report = tcpwhy.explain(LISTING)
    assert str(report) == command(LISTING, "--width=100").stdout.removesuffix("\n") + "\n"
    assert report.to_dict() == json.loads(command(LISTING, "--json").stdout)
    assert report[0].answer.startswith("Slow start took most")
    assert [connection.number for connection in report] == [0]
    assert "slow" in report[0].text(full=True).lower()
    assert repr(report).endswith("1 connection>")
    with pytest.raises(IndexError):
        report[1]


def test_tables_go_to_every_library_without_loss():
    report = tcpwhy.explain(CAPTURES[0])
    for name, columns in tcpwhy.tables().items():
        table = getattr(report, name)
        arrow = table.to_arrow()
        assert arrow.column_names == [column.name for column in columns]
        assert all(column.about.endswith(".") for column in columns)
        assert arrow.schema.metadata[b"tcpwhy.tables"] == b"1"
        assert arrow.schema == pyarrow.schema(table)
        assert table.to_polars().height == arrow.num_rows
        assert len(table.to_pandas()) == arrow.num_rows
        assert duckdb.sql("SELECT count(*) FROM arrow").fetchall() == [(arrow.num_rows,)]
    findings = report.findings.to_polars()
    assert findings["code"].to_list() == [each["code"] for each in report[0].findings]
    # Twice: rows are made anew each time.
    assert report.findings.to_arrow() == report.findings.to_arrow()


def test_frames_keep_null_and_integers():
    frame = tcpwhy.explain(LISTING).connections.to_pandas()
    assert pandas.isna(frame["start_time"][0]), "a listing has no dates"
    assert frame["duration_ns"].dtype == "int64[pyarrow]"


def test_many_connections_are_a_sequence_and_one_table():
    capture = TESTDATA / "cases"
    captures = [path for path in sorted(capture.rglob("*.pcap*")) if path.is_file()][:12]
    for path in captures:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tcpwhy.Remark)
            report = tcpwhy.explain(path)
        assert len(list(report)) == len(report) == report.connections.to_arrow().num_rows


def capture_of(connections: int) -> bytes:
    """A classic capture over raw IPv4: so many handshakes with a request and its answer."""
    out = [struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)]
    for number in range(connections):
        port, at = 1024 + number, 0
        for from_client, flags, seq, ack, payload in (
            (True, 2, 0, 0, b""),
            (False, 18, 0, 1, b""),
            (True, 16, 1, 1, b""),
            (True, 24, 1, 1, b"question"),
            (False, 24, 1, 9, b"answer"),
        ):
            ends, ports = ((1, 2), (port, 80)) if from_client else ((2, 1), (80, port))
            tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, 0x50, flags, 1000, 0, 0) + payload
            ip = struct.pack(">BBHHHBBH8B", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, 10, 0, 0, ends[0], 10, 0, 0, ends[1])
            at += 1000
            out.append(struct.pack("<IIII", 1_700_000_000 + number, at, 20 + len(tcp), 20 + len(tcp)) + ip + tcp)
    return b"".join(out)


def test_of_very_many_connections_all_are_there(tmp_path):
    # The first screen needs some of them alone, and the command keeps no others for it.
    path = tmp_path / "many.pcap"
    path.write_bytes(capture_of(300))
    report = tcpwhy.explain(path)
    assert len(report) == report.connections.to_arrow().num_rows == 300
    assert set(report.limits.to_arrow()["connection"].to_pylist()) == set(range(300))
    assert report.to_dict() == json.loads(command(path, "--json").stdout)


def test_parquet_is_the_command_s(tmp_path):
    said = tcpwhy.explain(CAPTURES[0]).write_parquet(tmp_path / "a", host="web1")
    assert said.startswith(f"wrote {tmp_path / 'a'}: ")
    command(CAPTURES[0], "--parquet", tmp_path / "b", "--host", "web1", check=True)
    files = lambda folder: {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.parquet")}
    assert files(tmp_path / "a") == files(tmp_path / "b") != {}
    summary = json.loads(command("summary", tmp_path / "a", "--json").stdout)
    assert summary["connections"] == 1
    with pytest.raises(OSError, match="cannot be a part of a path"):
        tcpwhy.explain(CAPTURES[0]).write_parquet(tmp_path / "a", host="../b")


def test_a_notebook_shows_the_screen_and_the_strip(tmp_path):
    shown = tcpwhy.explain(LISTING)._repr_html_()
    assert shown.startswith("<pre>") and "<svg" in shown
    graphs = tcpwhy.explain(LISTING, graphs=True)[0].graphs("server")
    assert "sequence" in graphs and all(svg.startswith("<svg") for svg in graphs.values())
    assert tcpwhy.explain(LISTING)[0].graphs() == {}
    tcpwhy.explain(LISTING, graphs=True).write_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!")
    with pytest.raises(ValueError, match="client or server"):
        tcpwhy.explain(LISTING)[0].strip("both")


def test_what_cannot_be_read_is_raised_with_its_place(tmp_path):
    with pytest.raises(tcpwhy.ReadError, match="no-such.pcap") as raised:
        tcpwhy.explain(tmp_path / "no-such.pcap")
    assert isinstance(raised.value, OSError)
    assert raised.value.file == str(tmp_path / "no-such.pcap")
    zeros = tmp_path / "zeros.pcap"
    header = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
    zeros.write_bytes(header + bytes(64))
    with pytest.raises(tcpwhy.ReadError) as raised:
        tcpwhy.explain(zeros)
    assert raised.value.file == str(zeros)
    assert (raised.value.packet, raised.value.offset) == (1, 24)
    with pytest.raises(tcpwhy.UsageError):
        tcpwhy.explain(LISTING, filter="hots 10.0.0.1")
    with pytest.raises(tcpwhy.UsageError, match="nothing to read"):
        tcpwhy.explain([])
    with pytest.raises(ValueError):
        tcpwhy.explain(LISTING, connection=7)


def test_a_capture_that_is_cut_is_explained_up_to_there_with_a_warning(tmp_path):
    packed = next(path for path in CAPTURES if path.suffix == ".gz")
    damaged = tmp_path / "damaged.pcap"
    content = gzip.decompress(packed.read_bytes())
    half = len(content) // 2
    damaged.write_bytes(content[:half] + b"\xff" * 4096)
    with pytest.warns(tcpwhy.Remark, match="read only in part"):
        report = tcpwhy.explain(damaged)
    capture = report.captures[0]
    assert capture["damage"]["packet"] == capture["packets"] + 1
    # The packet that the cut falls into is read as it is.
    assert half / 2 < capture["damage"]["offset"] <= half + 4096


def test_predict_and_whatif_answer_as_the_command_does():
    words = ["predict", "--size=512KiB", "--rtt=7ms", "--initcwnd=10,20", "--json"]
    predicted = tcpwhy.predict(size="512KiB", rtt="7ms", initcwnd=[10, 20])
    assert predicted == json.loads(command(*words).stdout)
    asked = tcpwhy.whatif(LISTING, set={"initcwnd": [20, 44]})
    assert asked == json.loads(command("whatif", LISTING, "--set=initcwnd=20,44", "--json").stdout)
    assert tcpwhy.predict(size="64KiB", rtt="7ms", server__route__congctl="bbr") != predicted
    with pytest.raises(tcpwhy.UsageError):
        tcpwhy.predict(size="much", rtt="7ms")
    with pytest.raises(tcpwhy.UsageError):
        tcpwhy.whatif(LISTING, set={"no.such.key": 1})


def test_check_judges_this_host_and_a_text(tmp_path):
    [here] = tcpwhy.check()
    assert here["format"] == "tcpwhy-check/1" and here["looks"] == 1
    text = tmp_path / "sysctl.txt"
    text.write_text("net.ipv4.tcp_window_scaling = 0\nnet.ipv4.tcp_sack = 0\n")
    [told] = tcpwhy.check(text)
    assert told["findings"]
    with pytest.raises(tcpwhy.UsageError, match="check"):
        tcpwhy.explain(text)


def test_other_threads_run_meanwhile():
    ticks = 0
    stop = threading.Event()

    def count():
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    began = time.monotonic()
    while time.monotonic() - began < 0.3:
        tcpwhy.explain(CAPTURES[0], threads=1)
    stop.set()
    counter.join()
    assert ticks > 20


def test_ctrl_c_ends_a_long_question():
    script = "import tcpwhy; tcpwhy.explain('-')"
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(1.5)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)
    assert "KeyboardInterrupt" in said
    assert child.returncode in (-signal.SIGINT, 130, 1)


def test_the_command_is_whole():
    assert command("--version").stdout.startswith("tcpwhy ")
    assert command("doc", "SLOW_START").returncode == 0
    assert command("no-such.pcap").returncode == 3
    assert command("--no-such-flag").returncode == 2
    module = subprocess.run([sys.executable, "-m", "tcpwhy", LISTING], capture_output=True, text=True)
    assert "Slow start took most" in module.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="a lab on this kernel wants root")
def test_the_lab_starts_itself_again_from_python():
    ran = command("lab", "run", "slow-start", "--backend=tun", "--json", timeout=120)
    assert ran.returncode == 0, ran.stderr
