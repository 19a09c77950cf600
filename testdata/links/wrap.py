#!/usr/bin/env python3
"""Wraps real TCP frames (from vxlan.pcap) in link layers and tunnels that need kernel modules.

    ./wrap.py        writes the wrapped captures next to itself

Three frames of each transfer (SYN, SYN-ACK, request) go into every wrapping. The headers are
written here by hand from their RFCs; tshark, which knows nothing of this file, is the judge:
see README.md.
"""

import struct
from pathlib import Path

HERE = Path(__file__).parent


def records(path):
    data = path.read_bytes()[24:]
    while data:
        _, _, kept, length = struct.unpack("<IIII", data[:16])
        yield data[16 : 16 + kept], length
        data = data[16 + kept :]


def write(name, link_type, frames, snap=65535):
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, link_type)
    for second, frame in enumerate(frames):
        kept = frame[:snap]
        out += struct.pack("<IIII", second, 0, len(kept), len(frame)) + kept
    (HERE / name).write_bytes(out)


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ipv4(protocol, payload):
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0,
        bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2]),
    )
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload


def ipv6(protocol, payload):
    ends = bytes.fromhex("20010db8" + "00" * 11 + "01" + "20010db8" + "00" * 11 + "02")
    return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + ends + payload


def udp(port, payload):
    return struct.pack("!HHHH", 50000, port, 8 + len(payload), 0) + payload


def ethernet(kind, payload):
    return bytes.fromhex("020000000002020000000001") + struct.pack("!H", kind) + payload


def gre(flags, kind, payload):
    fields = b""
    fields += struct.pack("!I", 9) if flags & 0x2000 else b""
    fields += struct.pack("!I", 1) if flags & 0x1000 else b""
    header = struct.pack("!HH", flags, kind)
    if flags & 0x8000:
        whole = header + bytes(4) + fields + payload
        fields = struct.pack("!HH", checksum(whole + bytes(len(whole) % 2)), 0) + fields
    return header + fields + payload


def tunnels(frame):
    """All Ethernet wrappings of one inner Ethernet frame."""
    kind, ip = struct.unpack("!H", frame[12:14])[0], frame[14:]
    ip_in_ip = 4 if kind == 0x0800 else 41
    tag = struct.pack("!HH", 5, kind)
    labels = bytes.fromhex("0000104000002140")
    yield ethernet(0x8100, tag + ip)
    yield ethernet(0x88A8, struct.pack("!HH", 7, 0x8100) + tag + ip)
    yield ethernet(0x9100, struct.pack("!HH", 7, 0x8100) + tag + ip)
    yield ethernet(8 + len(ip), bytes.fromhex("aaaa03000000") + struct.pack("!H", kind) + ip)
    ppp = struct.pack("!H", 0x21 if kind == 0x0800 else 0x57) + ip
    yield ethernet(0x8864, struct.pack("!BBHH", 0x11, 0, 77, len(ppp)) + ppp)
    for flags in (0, 0x8000, 0x2000, 0x1000, 0xB000):
        yield ethernet(0x0800, ipv4(47, gre(flags, kind, ip)))
    yield ethernet(0x86DD, ipv6(47, gre(0x2000, 0x6558, frame)))
    yield ethernet(0x0800, ipv4(47, gre(0x1000, 0x88BE, bytes.fromhex("1005000100000000") + frame)))
    yield ethernet(0x0800, ipv4(47, gre(0x1000, 0x22EB, bytes.fromhex("200500010000000000000000") + frame)))
    yield ethernet(0x0800, ipv4(ip_in_ip, ip))
    yield ethernet(0x86DD, ipv6(ip_in_ip, ip))
    yield ethernet(0x0800, ipv4(17, udp(6081, bytes.fromhex("0000655800000900") + frame)))
    yield ethernet(0x86DD, ipv6(17, udp(6081, bytes.fromhex("02006558000009000102000100000000") + frame)))
    yield ethernet(0x0800, ipv4(17, udp(4789, bytes.fromhex("0800000000000900") + ethernet(0x8100, tag + ip))))
    yield ethernet(0x8847, labels[:4] + bytes.fromhex("00002140") + ip)
    yield ethernet(0x8847, bytes.fromhex("00010140") + bytes(4) + frame)
    yield ethernet(0x86DD, ipv6(0, struct.pack("!BB", ip_in_ip, 0) + bytes.fromhex("010400000000") + ip))
    yield ethernet(0x86DD, ipv6(44, struct.pack("!BBHI", ip_in_ip, 0, 0, 1) + ip))
    yield ethernet(0x0800, ip_padded(ip))
    yield ethernet(kind, frame[14:] + b"\xee" * 9)


def ip_padded(ip):
    """IPv4 with a record-route option in front, so that the header is 24 bytes long."""
    outer = ipv4(4 if ip[0] >> 4 == 4 else 41, ip)
    header = bytearray(bytes([0x46]) + outer[1:20] + bytes([7, 3, 4, 0]))
    header[2:4] = struct.pack("!H", len(header) + len(ip))
    header[10:12] = bytes(2)
    header[10:12] = struct.pack("!H", checksum(bytes(header)))
    return bytes(header) + ip


def main():
    inner = [f[50:] for f, n in records(HERE / "vxlan.pcap") if n == len(f) and n > 100 and f[64 + 9 if f[62] == 8 else 64 + 6] == 6]
    chosen = [frames for v in (b"\x08\x00", b"\x86\xdd") for f in [[x for x in inner if x[12:14] == v]] for frames in (f[0], f[1], f[3])]
    wrapped = [w for frame in chosen for w in tunnels(frame)]
    write("tunnels.pcap", 1, wrapped)
    write("tunnels-cut.pcap", 1, wrapped, snap=96)
    ips = [frame[14:] for frame in chosen]
    ppp = [struct.pack("!H", 0x21 if ip[0] >> 4 == 4 else 0x57) + ip for ip in ips]
    write("raw.pcap", 101, ips)
    write("null.pcap", 0, [struct.pack("<I", 2 if ip[0] >> 4 == 4 else 30) + ip for ip in ips])
    write("null-big-endian.pcap", 0, [struct.pack(">I", 2 if ip[0] >> 4 == 4 else 24) + ip for ip in ips])
    write("loop.pcap", 108, [struct.pack(">I", 2 if ip[0] >> 4 == 4 else 24) + ip for ip in ips])
    write("ppp.pcap", 9, [b"\xff\x03" + p for p in ppp])
    write("ppp-hdlc.pcap", 50, [b"\xff\x03" + p for p in ppp] + [b"\x0f\x00" + frame[12:] for frame in chosen])
    write("ppp-direction.pcap", 204, [bytes([at % 2]) + b"\xff\x03" + p for at, p in enumerate(ppp)])


main()
