"""A device on the way that does one thing wrong, so that each is seen once with its cause known.

    middlebox.py LEFT RIGHT CONFIGURATION.json

Frames go from LEFT (the server's device) to RIGHT (the client's) and back, each way after a delay
and at a rate, through one thread. Besides, as the configuration asks:

    drop_longer     IP packets from the server longer than this are dropped, and nobody is told
    strip           options of SYNs (by kind) are overwritten by NOPs: {"down": [...], "up": [...]}
    thin            of the client's pure ACKs, only every so manieth is passed on, or after 50 ms
    mark            packets of the server that can be marked are marked (CE) while more wait than this
    stand_still     [[FROM_S, TO_S, WAY]]: nothing leaves that way in between (since the first SYN)

Left out: accuracy below a millisecond. What is to be seen here are causes, not microseconds.
"""

import heapq
import json
import select
import socket
import struct
import sys
import time

MARKABLE, MARKED = (1, 2), 3  # ECN field: ECT(1) and ECT(0); CE (RFC 3168 section 5)
NOP = 1
THINNED_FOR_S = 0.05


def checksum(data):
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Packet:
    """An Ethernet frame with IPv4 and TCP in it."""

    def __init__(self, frame):
        self.frame = bytearray(frame)
        self.ip = 14
        self.tcp = self.ip + (frame[self.ip] & 15) * 4
        self.length = struct.unpack_from("!H", frame, self.ip + 2)[0]
        self.header = (frame[self.tcp + 12] >> 4) * 4
        self.flags = frame[self.tcp + 13]
        self.payload = self.length - (self.tcp - self.ip) - self.header

    def opens(self, port):
        """Whether this is a SYN to that port."""
        return self.flags == 2 and struct.unpack_from("!H", self.frame, self.tcp + 2)[0] == port

    @staticmethod
    def is_tcp(frame):
        return len(frame) >= 54 and frame[12:14] == b"\x08\x00" and frame[23] == 6

    def strip(self, kinds):
        """Overwrites options of these kinds by NOPs."""
        at, end = self.tcp + 20, self.tcp + self.header
        while at < end and self.frame[at] != 0:
            kind = self.frame[at]
            length = 1 if kind == NOP else self.frame[at + 1]
            if kind in kinds:
                self.frame[at:at + length] = bytes([NOP]) * length
            at += length
        self.mend()

    def mark(self):
        """Sets the ECN field to CE."""
        self.frame[self.ip + 1] |= MARKED
        self.mend()

    def mend(self):
        """Makes both checksums right."""
        self.frame[self.ip + 10:self.ip + 12] = b"\0\0"
        struct.pack_into("!H", self.frame, self.ip + 10, checksum(bytes(self.frame[self.ip:self.tcp])))
        self.frame[self.tcp + 16:self.tcp + 18] = b"\0\0"
        body = bytes(self.frame[self.tcp:self.ip + self.length])
        pseudo = bytes(self.frame[self.ip + 12:self.ip + 20]) + struct.pack("!BBH", 0, 6, len(body))
        struct.pack_into("!H", self.frame, self.tcp + 16, checksum(pseudo + body))


class Way:
    """One direction: what waits in it, and until when its link is busy."""

    def __init__(self, name, out, configuration):
        self.name, self.out, self.configuration = name, out, configuration
        self.delay = configuration["delay_ms"] / 1e3
        self.rate = configuration.get("rate_mbit", 1000) * 1e6
        self.free, self.order, self.waiting = 0.0, 0, []
        self.held, self.number = None, 0

    def take(self, frame, now, begun):
        """Takes a frame; what is wrong with this device happens here."""
        configuration = self.configuration
        if Packet.is_tcp(frame):
            packet = Packet(frame)
            longest = configuration.get("drop_longer")
            if self.name == "down" and longest and packet.length > longest:
                return
            kinds = configuration.get("strip", {}).get(self.name)
            if kinds and packet.flags & 2:
                packet.strip(kinds)
            queue = max(0.0, self.free - now)
            marked_from = configuration.get("mark_ms")
            ecn = packet.frame[packet.ip + 1] & 3
            if self.name == "down" and marked_from and ecn in MARKABLE and queue > marked_from / 1e3:
                packet.mark()
            frame = bytes(packet.frame)
            thin = configuration.get("thin")
            if self.name == "up" and thin and packet.payload == 0 and packet.flags == 16:
                self.number += 1
                self.held = (frame, now + THINNED_FOR_S)
                if self.number % thin:
                    return
            self.held = None
        self.send(frame, now, begun)

    def send(self, frame, now, begun):
        """Lets a frame wait for the link, the distance, and for the way to move again."""
        self.free = max(self.free, now) + len(frame) * 8 / self.rate
        due = self.free + self.delay
        for start, end, way in self.configuration.get("stand_still", []):
            if begun and way == self.name and begun + start <= due < begun + end:
                due = begun + end
        self.order += 1
        heapq.heappush(self.waiting, (due, self.order, frame))

    def deliver(self, now, begun):
        """Sends what is due; how long until the next."""
        if self.held and self.held[1] <= now:
            frame, self.held = self.held[0], None
            self.send(frame, now, begun)
        while self.waiting and self.waiting[0][0] <= now:
            self.out.send(heapq.heappop(self.waiting)[2])
        times = [self.waiting[0][0]] if self.waiting else []
        times += [self.held[1]] if self.held else []
        return min(times, default=now + 1) - now


def main():
    left, right, configuration = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    sockets = []
    for device in (left, right):
        each = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        each.bind((device, 0))
        sockets.append(each)
    down = Way("down", sockets[1], configuration)
    up = Way("up", sockets[0], configuration)
    by_socket = {sockets[0]: down, sockets[1]: up}
    begun, wait = None, 1.0
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select(sockets, [], [], max(0.0, wait))
        now = time.monotonic()
        for each in ready:
            frame, address = each.recvfrom(65536)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            if begun is None and Packet.is_tcp(frame) and Packet(frame).opens(80):
                begun = now
            by_socket[each].take(frame, now, begun)
        wait = min(way.deliver(now, begun) for way in (down, up))


main()
