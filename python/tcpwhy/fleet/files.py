"""The files of hosts, where they lie: on this machine, or where `pyarrow.fs` reaches."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from typing import Any

from .._errors import ReadError

END = 64 << 10
"""Bytes at a file's start and end that tell it from others, with its length. Ours."""

COPIED = 4 << 20
"""Bytes that are copied at once. Ours."""


def absolute(path: str | os.PathLike[str]) -> str:
    path = os.fspath(path)
    if path.startswith("file://"):
        path = path.removeprefix("file://")
    return path if "://" in path else os.path.abspath(path)


def remote_of(path: str) -> tuple[Any, str] | None:
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
"""`path`, `size`, `modified`; `digest` once it is known, `problem` of what is not read."""


def listed(input: str, host: str | None) -> dict[str | None, list[File]]:
    """The files by their hosts."""
    hosts: dict[str | None, list[File]] = {}
    for inside, file in _files(input):
        folders = inside.split("/")[:-1]
        name = host if host is not None else folders[0] if folders else None
        hosts.setdefault(name, []).append(file)
    return hosts


def _files(input: str) -> Iterator[tuple[str, File]]:
    """Each file, with its path inside of the folder. Those whose names begin with a dot or `_` are none of ours, as Spark
    has it."""
    remote = remote_of(input)
    if remote is not None:
        from pyarrow import fs

        system, root = remote
        scheme = input.split("://", 1)[0] + "://"
        infos = system.get_file_info(fs.FileSelector(root, recursive=True))
        for info in sorted(infos, key=lambda info: info.path):
            inside = info.path[len(root) :].lstrip("/")
            if info.type == fs.FileType.File and not _is_hidden(inside):
                yield inside, {"path": scheme + info.path, "size": info.size, "modified": info.mtime_ns or 0}
        return
    if not os.path.exists(input):
        raise ReadError(f"there is no file or folder {input}", input)
    if not os.path.isdir(input):
        yield os.path.basename(input), _file(input)
        return
    denied: list[OSError] = []
    for folder, folders, names in os.walk(input, onerror=denied.append):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, input).replace(os.sep, "/")
            if not _is_hidden(inside):
                yield inside, _file(path)
    for error in denied:
        folder = os.fspath(error.filename)
        inside = os.path.relpath(folder, input).replace(os.sep, "/")
        if folder == input:
            raise ReadError(f"cannot read the folder {input}: {_why(error)}", input)
        if not _is_hidden(inside):
            # As a file in it, so that it belongs to its host.
            yield f"{inside}/", {"path": folder, "size": -1, "modified": 0, "problem": f"cannot read the folder: {_why(error)}"}


def _is_hidden(inside: str) -> bool:
    return any(part.startswith((".", "_")) for part in inside.split("/"))


def _file(path: str) -> File:
    try:
        found = os.stat(path)
    except OSError as error:
        return {"path": path, "size": -1, "modified": 0, "problem": _why(error)}
    file: File = {"path": path, "size": found.st_size, "modified": found.st_mtime_ns}
    if not stat.S_ISREG(found.st_mode):
        # Reading a pipe could wait for ever.
        file["problem"] = "it is no plain file: left out"
    return file


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


@contextlib.contextmanager
def local_copy(path: str, most: int | None = None) -> Iterator[str]:
    """A file that can be opened here, with the first `most` bytes of that at `path` at least."""
    remote = remote_of(path)
    if remote is None:
        yield path
        return
    system, inside = remote
    with tempfile.NamedTemporaryFile(suffix=os.path.basename(path)) as spool:
        with system.open_input_stream(inside, compression=None) as source:
            if most is None:
                shutil.copyfileobj(source, spool, COPIED)
            else:
                spool.write(source.read(most))
        spool.flush()
        yield spool.name


def digest_of(file: File) -> str:
    """The same of files with the same bytes: of their lengths, starts and ends. Empty of what cannot be read."""
    if "problem" in file:
        return ""
    digest = hashlib.blake2b(str(file["size"]).encode(), digest_size=16)
    try:
        remote = remote_of(file["path"])
        with open(file["path"], "rb") if remote is None else remote[0].open_input_file(remote[1]) as opened:
            digest.update(opened.read(END))
            if file["size"] > END:
                opened.seek(max(file["size"] - END, 0))
                digest.update(opened.read(END))
    except OSError:
        return ""
    return digest.hexdigest()
