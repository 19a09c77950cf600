"""Carries Ethernet frames between namespaces with delay, a rate, a queue and loss.

A user-space path emulator for kernels without netem. Each link is a pair of TAP devices,
one in each namespace. A frame read from one end passes, per direction:

    loss (of data or of all, seeded; or exact data packets) -> drop-tail queue -> serialisation -> delay -> other end

A TAP device offers no offloads, so the kernel hands over frames of wire size, and what is
lost here is a wire packet. Every loss is counted: that is the truth about the path.

Run by `path.py` with a JSON file of links; ends on SIGTERM and then writes what it did:
carried, lost and lateness per direction. Run it under SCHED_FIFO (`chrt -f`): without it
the scheduler adds jumps of 4 ms. One thread, about 15,000 packets a second.
Left out: reordering, duplication, corruption.
"""

import fcntl
import heapq
import json
import os
import random
import select
import signal
import struct
import sys
import time

import netns

TUNSETIFF = 0x400454CA  # linux/if_tun.h
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
SPIN_NS = 40_000  # Ours: select() returns up to this late under SCHED_FIFO


def open_tap(namespace, device):
    """Makes a TAP device in a namespace; the descriptor stays bound to that namespace."""
    netns.enter(namespace)
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TAP | IFF_NO_PI))
    return fd


def carries_data(frame):
    """Whether a frame is a TCP segment with payload, IPv4 or IPv6 without extension headers."""
    if frame[12:14] == b"\x08\x00" and frame[23] == 6:
        tcp = 14 + (frame[14] & 15) * 4
        end = 14 + int.from_bytes(frame[16:18], "big")
    elif frame[12:14] == b"\x86\xdd" and frame[20] == 6:
        tcp = 54
        end = 54 + int.from_bytes(frame[18:20], "big")
    else:
        return False
    return end > tcp + (frame[tcp + 12] >> 4) * 4


class Direction:
    """One direction of a link: what enters at `source` leaves at `sink`."""

    def __init__(self, source, sink, path):
        self.source, self.sink = source, sink
        self.delay_ns = int(path.get("delay_ms", 0) * 1e6)
        self.ns_per_byte = 8000 / path["rate_mbit"] if "rate_mbit" in path else 0
        self.queue_limit = path.get("queue_packets", 10_000)
        self.loss = path.get("loss", 0)
        self.loss_of_all = path.get("loss_of_all", 0)
        self.drop_data = set(path.get("drop_data", []))
        self.random = random.Random(path.get("seed", 1))
        self.departures = []  # heap: times at which queued frames leave the queue
        self.free_at = 0
        self.data_packets = 0
        self.counts = {"carried": 0, "lost_data": 0, "lost_other": 0}
        self.late_ns = []

    def due(self, frame, now):
        """When the frame arrives at the other end, or None if it is lost."""
        data = carries_data(frame)
        self.data_packets += data
        while self.departures and self.departures[0] <= now:
            heapq.heappop(self.departures)
        lost = len(self.departures) >= self.queue_limit
        lost |= data and (self.data_packets in self.drop_data or self.random.random() < self.loss)
        lost |= self.loss_of_all > 0 and self.random.random() < self.loss_of_all
        if lost:
            self.counts["lost_data" if data else "lost_other"] += 1
            return None
        self.free_at = max(now, self.free_at) + int(len(frame) * self.ns_per_byte)
        heapq.heappush(self.departures, self.free_at)
        return self.free_at + self.delay_ns

    def deliver(self, frame, due, now):
        """Hands a frame to the other end."""
        self.counts["carried"] += 1
        self.late_ns.append(now - due)
        try:
            os.write(self.sink, frame)
        except OSError:  # the device is down or gone: a frame lost like on an unplugged cable
            self.counts["lost_other"] += 1

    def report(self):
        """Counts, and how late frames were delivered."""
        late = sorted(self.late_ns) or [0]
        return self.counts | {"late_p50_us": late[len(late) // 2] // 1000,
                              "late_p99_us": late[len(late) * 99 // 100] // 1000}


def carry(directions, ended):
    """The loop: read what came, deliver what is due, sleep until the next is due."""
    by_source = {direction.source: direction for direction in directions}
    pending, order = [], 0
    while not ended:
        now = time.monotonic_ns()
        while pending and pending[0][0] <= now:
            due, _, direction, frame = heapq.heappop(pending)
            direction.deliver(frame, due, now)
            now = time.monotonic_ns()
        sleep_s = max(0, pending[0][0] - now - SPIN_NS) / 1e9 if pending else 0.2
        for source in select.select(list(by_source), [], [], sleep_s)[0]:
            frame = os.read(source, 65536)
            due = by_source[source].due(frame, time.monotonic_ns())
            if due is not None:
                order += 1
                heapq.heappush(pending, (due, order, by_source[source], frame))


def main():
    config_file, report_file = sys.argv[1:]
    with open(config_file, encoding="utf-8") as file:
        links = json.load(file)
    directions = {}
    for link in links:
        a = open_tap(link["a"]["namespace"], link["a"]["device"])
        b = open_tap(link["b"]["namespace"], link["b"]["device"])
        directions[f"{link['name']} a to b"] = Direction(a, b, link.get("a_to_b", {}))
        directions[f"{link['name']} b to a"] = Direction(b, a, link.get("b_to_a", {}))
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    print("ready", flush=True)
    carry(list(directions.values()), ended)
    with open(report_file, "w", encoding="utf-8") as file:
        json.dump({name: direction.report() for name, direction in directions.items()}, file)


if __name__ == "__main__":
    main()
