"""What goes wrong, as exceptions."""

from __future__ import annotations


class Error(Exception):
    """Why there is no answer.

    Attributes:
        file: The file that it is about, or None.
        packet: The packet behind which nothing can be read, from 1, or None.
        offset: The bytes before that packet (unpacked), or None.
    """

    def __init__(
        self,
        why: str,
        file: str | None = None,
        packet: int | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(why)
        self.file = file
        self.packet = packet
        self.offset = offset


class UsageError(Error, ValueError):
    """What was asked for makes no sense: an unknown setting, or a filter that does not parse."""


class ReadError(Error, OSError):
    """Nothing could be read: no such file, no capture, or damage before the first packet."""

    def __str__(self) -> str:
        return str(self.args[0])


class Remark(UserWarning):
    """An answer that is not whole, such as of a capture that was read only in part."""
