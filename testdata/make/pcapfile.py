"""Reads and writes the few pcap forms that the makers need, on bytes.

Reads classic pcap of either byte order and resolution; writes it in any of the four forms.
This is no parser for strange input: the makers read only what tcpdump just wrote.
It shares no code with tcpwhy, so that truth counted here is an independent count.
"""

import dataclasses
import struct

ETHERNET, LINUX_SLL2 = 1, 276  # tcpdump.org/linktypes.html
MAGIC_US, MAGIC_NS = 0xA1B2C3D4, 0xA1B23C4D


@dataclasses.dataclass(frozen=True)
class Record:
    """One captured packet; `length` is what was on the wire."""

    time_ns: int
    frame: bytes
    length: int


@dataclasses.dataclass
class Capture:
    """A capture file."""

    link_type: int
    snap: int
    records: list


@dataclasses.dataclass(frozen=True)
class Segment:
    """Where TCP lies in a frame, and what it says. Offsets are into the frame."""

    ip: int
    tcp: int
    v6: bool
    source_port: int
    seq: int
    ack: int
    flags: int
    payload: int

    @property
    def syn(self):
        """Whether SYN is set."""
        return bool(self.flags & 2)


def read(data):
    """A classic pcap file."""
    for order in "<>":
        magic = struct.unpack_from(f"{order}I", data)[0]
        if magic in (MAGIC_US, MAGIC_NS):
            break
    else:
        raise ValueError("not a classic pcap file")
    unit = 1 if magic == MAGIC_NS else 1000
    snap, link_type = struct.unpack_from(f"{order}II", data, 16)
    records, at = [], 24
    while at < len(data):
        seconds, fraction, captured, length = struct.unpack_from(f"{order}IIII", data, at)
        frame = data[at + 16:at + 16 + captured]
        records.append(Record(seconds * 10**9 + fraction * unit, frame, length))
        at += 16 + captured
    return Capture(link_type, snap, records)


def write(capture, order="<", nanoseconds=False):
    """The bytes of a classic pcap file."""
    unit = 1 if nanoseconds else 1000
    magic = MAGIC_NS if nanoseconds else MAGIC_US
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, capture.snap, capture.link_type)]
    for record in capture.records:
        seconds, rest = divmod(record.time_ns, 10**9)
        parts.append(struct.pack(f"{order}IIII", seconds, rest // unit, len(record.frame), record.length))
        parts.append(record.frame)
    return b"".join(parts)


def segment(record, link_type=ETHERNET):
    """The TCP segment in a record."""
    frame = record.frame
    ip = 14 if link_type == ETHERNET else 20
    v6 = frame[ip] >> 4 == 6
    tcp = ip + (40 if v6 else (frame[ip] & 15) * 4)
    # The kernel leaves the total length of a packet it will segment itself; 0 means: see the record.
    said = int.from_bytes(frame[ip + 4:ip + 6] if v6 else frame[ip + 2:ip + 4], "big")
    end = ip + said + (40 if v6 else 0) if said else record.length
    source, _, seq, ack, offset, flags = struct.unpack_from("!HHIIBB", frame, tcp)
    return Segment(ip, tcp, v6, source, seq, ack, flags, end - tcp - (offset >> 4) * 4)


def data_segments(capture, port):
    """The segments with payload that a port sent, in captured order."""
    segments = (segment(record, capture.link_type) for record in capture.records)
    return [one for one in segments if one.source_port == port and one.payload > 0]


def since(seq, earlier):
    """Signed distance on the circle of sequence numbers (RFC 9293, 3.4)."""
    return (seq - earlier + 2**31) % 2**32 - 2**31
