"""The analysis of one host: its captures in their order, cut into pieces and joined."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from .. import _native
from .files import COPIED, File, digest_of, local_copy, remote_of
from .known import RUN


OVERLAP_NS = 1_000_000_000
"""By more than this rotated files do not overlap; as the command has it."""


def in_order(files: list[File]) -> tuple[list[File], list[dict[str, Any]]]:
    """A host's files in the order in which they were begun, without copies; what is to be said of those."""
    problems = []
    kept: dict[str, File] = {}
    for file in files:
        if "problem" in file:
            problems.append({"file": file["path"], "problem": file["problem"]})
            continue
        digest = file["digest"] = file.get("digest") or digest_of(file)
        if digest and digest in kept:
            problems.append({"file": file["path"], "problem": f"it is a copy of {kept[digest]['path']}: left out"})
        else:
            kept[digest or file["path"]] = file
    left = list(kept.values())
    with contextlib.ExitStack() as open_files:
        local = {file["path"]: open_files.enter_context(local_copy(file["path"], 4 * COPIED)) for file in left}
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
    elif capture["tcp_segments"] == 0 and capture["icmp_errors"] == 0:
        skipped = ", ".join(f"{each['count']} {each['reason']}" for each in capture["skipped"])
        yield {"file": path, "problem": f"it holds no TCP that could be read ({skipped})"}
    for quality in capture["quality"]:
        if quality["kind"] == "cut_short":
            yield {"file": path, "problem": quality["note"]}


def cut(path: str) -> Iterator[tuple[int, bytes, str]]:
    """The pieces of a capture, each with its shard; then, of shard -1, what is beside them."""
    with local_copy(path) as local:
        cutting = _native.cut(local)
        for shard, piece in cutting:
            yield shard, piece, ""
        beside, heard = cutting.beside()
    told = json.loads(beside)
    told["capture"]["source"] = path
    yield -1, heard, json.dumps(told)


class Host:
    """The analysis of one host: captures in their order, then their pieces, in order for each shard."""

    def __init__(self, host: str | None) -> None:
        self.host = host
        self.joining = _native.Joining()
        self.problems: list[dict[str, Any]] = []
        self.places: dict[int, int] = {}
        """The place of a file among those that are joined."""
        self.latest: tuple[int, str] | None = None
        """The last time met, in nanoseconds since 1970, and in which file."""

    def begin(self, number: int, beside: str, heard: bytes) -> None:
        told = json.loads(beside)
        self.problems += _wrong(told["capture"]["source"], told)
        if not told["is_whole"]:
            self.places[number] = len(self.places)
            self.joining.begin(beside, heard)
            self._look_at(told["capture"]["source"], told["times"])

    def _look_at(self, path: str, times: list[int] | None) -> None:
        """Tells of a file that begins before those before it end: what both hold counts twice."""
        if times is None:
            return
        first, last = times
        if self.latest is not None and self.latest[0] - first > OVERLAP_NS:
            seconds = (self.latest[0] - first) / 1e9
            why = f"it begins {seconds:.1f} s before {self.latest[1]} ends: these are no parts of one capture, and what both hold counts twice"
            self.problems.append({"file": path, "problem": why})
        if self.latest is None or last > self.latest[0]:
            self.latest = (last, path)

    def push(self, number: int, piece: bytes) -> None:
        if number in self.places:
            self.joining.push(self.places[number], piece)

    def write(self, output: str) -> dict[str, Any]:
        remote = remote_of(output)
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
            shutil.copyfileobj(source, to, COPIED)
        system.move(beside, place)
        new.add(place)
    own = f"/host={host if host is not None else '__HIVE_DEFAULT_PARTITION__'}/{RUN}-"
    for table in {os.path.relpath(file, folder).split(os.sep)[0] for file in files} | {name for name, _, _ in _native.tables()}:
        for info in system.get_file_info(fs.FileSelector(f"{root}/{table}", allow_not_found=True, recursive=True)):
            if info.type == fs.FileType.File and own in info.path and info.path not in new:
                system.delete_file(info.path)


def one(item: tuple[str | None, list[File]], output: str) -> dict[str, Any]:
    host, files = item
    ordered, problems = in_order(files)
    one = Host(host)
    for number, file in enumerate(ordered):
        pieces = []
        for shard, piece, beside in cut(file["path"]):
            if shard < 0:
                one.begin(number, beside, piece)
            else:
                pieces.append(piece)
        for piece in pieces:
            one.push(number, piece)
    told = one.write(output)
    told["problems"] = problems + told["problems"]
    return told
