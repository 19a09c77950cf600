"""What runs before found: the tables `files` and `problems`."""

from __future__ import annotations

from typing import Any

from .files import File, digest_of, remote_of

RUN = "fleet"
"""The name of a run's files, so that a later one replaces them."""


class Known:
    """Both tables, as the last run left them."""

    def __init__(self, files: list[dict[str, Any]], problems: list[dict[str, Any]]) -> None:
        self.files = files
        self.problems = problems
        self._of: dict[str | None, list[dict[str, Any]]] = {}
        for row in files:
            self._of.setdefault(row["host"], []).append(row)

    @classmethod
    def read(cls, output: str) -> Known:
        return cls(_read_rows(output, "files"), _read_rows(output, "problems"))

    def has(self, host: str | None, files: list[File]) -> bool:
        rows = self._of.get(host, [])
        if not rows:
            return False
        # What could not be read may be there now.
        denied = {row["file"] for row in rows if not row["digest"]}
        if any(file["path"] in denied and digest_of(file) for file in files):
            return False
        known = {(row["file"], row["bytes"], row["modified_ns"]) for row in rows}
        if {(file["path"], file["size"], file["modified"]) for file in files} == known:
            return True
        # Names and times may differ where the bytes are the same.
        for file in files:
            file["digest"] = digest_of(file)
        return {file["digest"] for file in files if file["digest"]} == {row["digest"] for row in rows if row["digest"]}

    def write(self, output: str, changed: dict[str | None, list[File]], problems: list[dict[str, Any]]) -> None:
        files = [row for row in self.files if row["host"] not in changed]
        for host, those in changed.items():
            for file in those:
                digest = file["digest"] if "digest" in file else digest_of(file)
                files.append(
                    {
                        "host": host,
                        "file": file["path"],
                        "bytes": file["size"],
                        "modified_ns": file["modified"],
                        "digest": digest,
                    }
                )
        told = [row for row in self.problems if row["host"] not in changed] + problems
        # What is wrong is told before it is taken for done.
        _write_rows(output, "problems", told)
        _write_rows(output, "files", files)


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

    remote = remote_of(output)
    system, root = remote if remote is not None else (fs.LocalFileSystem(), output)
    try:
        return pq.read_table(f"{root}/{table}/{RUN}.parquet", filesystem=system).to_pylist()
    except FileNotFoundError:
        return []


def _write_rows(output: str, table: str, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    from pyarrow import fs
    from pyarrow import parquet as pq

    remote = remote_of(output)
    system, root = remote if remote is not None else (fs.LocalFileSystem(), output)
    system.create_dir(f"{root}/{table}", recursive=True)
    # Whole under its name, or not at all.
    beside = f"{root}/{table}/.{RUN}.part"
    pq.write_table(pa.Table.from_pylist(rows, schema=_schemas()[table]), beside, filesystem=system)
    system.move(beside, f"{root}/{table}/{RUN}.parquet")
