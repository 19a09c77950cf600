"""Reports, their connections, and their tables."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

SENDERS = ("client", "server")


@dataclass(frozen=True)
class Column:
    """A column of a table: its name with its unit, its Arrow type, and what it means."""

    name: str
    type: str
    about: str


def tables() -> dict[str, list[Column]]:
    """The tables there are, with their columns."""
    return {
        name: [Column(*column) for column in columns] for name, _, columns in _native.tables()
    }


class Table:
    """A table of a report. Its rows are made when they are asked for.

    Everything that knows Arrow's PyCapsule interface takes it: `polars.DataFrame(table)`, `pyarrow.table(table)`,
    `duckdb.from_arrow(pyarrow.table(table))`, `pandas` by pyarrow.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name

    @property
    def about(self) -> str:
        """What its rows are."""
        return self._native.about

    @property
    def columns(self) -> list[Column]:
        """Its columns, in order."""
        return tables()[self.name]

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """As a table of pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """As a data frame of polars."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame of pandas, with Arrow's types: null stays null and integers stay integers."""
        import pandas

        return self.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    def __repr__(self) -> str:
        return f"<tcpwhy.Table {self.name}: {self.about}>"


class Connection:
    """One connection of a report."""

    def __init__(self, native: _native.Report, place: int) -> None:
        self._native = native
        self._place = place

    @cached_property
    def data(self) -> dict[str, Any]:
        """All that is known of it, as `tcpwhy --json` has it (docs/report.schema.json)."""
        return json.loads(self._native.connection_json(self._place))

    @property
    def number(self) -> int:
        """Its number in the report."""
        return self.data["id"]

    @property
    def client(self) -> str:
        """Who opened it: address and port."""
        return self.data["client"]

    @property
    def server(self) -> str:
        """The other end: address and port."""
        return self.data["server"]

    @property
    def duration(self) -> float:
        """First to last captured packet, in seconds."""
        return self.data["duration_ns"] / 1e9

    @property
    def answer(self) -> str:
        """What took the time, or what did not work, in a few sentences."""
        return self.data["answer"]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What was found, the most important first."""
        return self.data["findings"]

    def text(self, *, width: int = 100, full: bool = False) -> str:
        """What the command prints of it: the first screen, or all."""
        return self._native.text(width, full, self._place)

    def strip(self, sender: str = "server") -> str | None:
        """What held this sender over time, as SVG; None if it sent nothing."""
        return self._native.strip(self._place, _side(sender))

    def graphs(self, sender: str = "server") -> dict[str, str]:
        """Its graphs by name, as SVG; empty unless `explain` was asked for `graphs`."""
        return dict(self._native.graphs(self._place, _side(sender)))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<tcpwhy.Connection {self.number}: {self.client} to {self.server}>"

    def _repr_html_(self) -> str:
        parts = [f"<pre>{html.escape(self.text(width=100))}</pre>"]
        for sender in SENDERS:
            graphs = self.graphs(sender)
            strip = self.strip(sender)
            if graphs:
                parts += graphs.values()
            elif strip and self._sent(sender):
                parts.append(f"<div>The {sender}'s data:</div>{strip}")
        return "\n".join(parts)

    def _sent(self, sender: str) -> bool:
        direction = self.data["directions"][_side(sender)]
        return bool(direction and direction.get("bytes"))


class Report:
    """What was found in captures: a sequence of connections, and tables."""

    def __init__(self, native: _native.Report) -> None:
        self._native = native

    @property
    def connections(self) -> Table:
        """One TCP connection a row."""
        return self._table("connections")

    @property
    def transfers(self) -> Table:
        """One run of application data of one direction a row."""
        return self._table("transfers")

    @property
    def requests(self) -> Table:
        """One request with its answer a row."""
        return self._table("requests")

    @property
    def limits(self) -> Table:
        """One interval a row, with what held the sender in it."""
        return self._table("limits")

    @property
    def rounds(self) -> Table:
        """One round trip of data a row."""
        return self._table("rounds")

    @property
    def findings(self) -> Table:
        """One finding a row, with what would be saved without its cause."""
        return self._table("findings")

    @property
    def changes(self) -> Table:
        """One change a row that would make the connection faster, as its first screen ranks them."""
        return self._table("changes")

    @cached_property
    def _head(self) -> dict[str, Any]:
        return json.loads(self._native.head_json())

    @property
    def captures(self) -> list[dict[str, Any]]:
        """The captures read: source, packets, what was passed over, and why reading stopped early (`error`, `damage`)."""
        return self._head["captures"]

    def text(self, *, width: int = 100, full: bool = False) -> str:
        """What the command prints: the first screen, or all."""
        return self._native.text(width, full)

    def to_json(self) -> str:
        """The whole report as `tcpwhy --json` prints it (docs/report.schema.json)."""
        return self._native.json()

    def to_dict(self) -> dict[str, Any]:
        """The same as Python's own types."""
        return json.loads(self.to_json())

    def write_parquet(self, folder: str | os.PathLike[str], *, host: str | None = None) -> str:
        """Writes all tables into a folder of Parquet files, by day and host (docs/tables.md).

        A report of the same captures replaces what was written before. Returns what was written, in a sentence.
        """
        return self._native.write_parquet(os.fspath(folder), host)

    def write_html(self, path: str | os.PathLike[str]) -> None:
        """Writes the page for the browser; with graphs if `explain` was asked for `graphs`."""
        self._native.write_page(os.fspath(path))

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, place: int) -> Connection:
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError("there is no connection of that index")
        return Connection(self._native, place)

    def __iter__(self) -> Iterator[Connection]:
        return (Connection(self._native, place) for place in range(len(self)))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        names = ", ".join(capture["source"] for capture in self.captures)
        number = len(self)
        return f"<tcpwhy.Report of {names}: {number} connection{'' if number == 1 else 's'}>"

    def _repr_html_(self) -> str:
        if len(self) == 1:
            return self[0]._repr_html_()
        return f"<pre>{html.escape(self.text(width=100))}</pre>"

    def _table(self, name: str) -> Table:
        return Table(self._native.table(name))


def _side(sender: str) -> int:
    if sender not in SENDERS:
        raise ValueError(f"the sender is client or server, not {sender!r}")
    return SENDERS.index(sender)
