"""Builds the paths on which the makers transfer, and brings back the kernel's account.

Three shapes, all with `relay.c` as the wire:

    direct   server --relay(delay, rate, queue, loss)-- client
    routed   server --veth-- router --relay-- client, the veth with or without offloads
    edge     server --relay(egress delay)-- edge --relay(delay, rate)-- client

In the last, a capture on the edge's device towards the server sees what a tap sees that
sits behind the server's own egress delay: data appears late, ACKs are seen on arrival.

The kernel's account of a run is read where it happened: the server's TCP_INFO when all is
acknowledged, TcpRetransSegs and its relatives from the namespaces' counters, the events of
the tcp_retransmit_skb tracepoint, and the relay's own count of what it lost.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import netns

HERE = pathlib.Path(__file__).resolve().parent
SERVER, CLIENT = "192.0.2.1", "198.51.100.2"  # RFC 5737
SERVER6, CLIENT6 = "2001:db8:1::1", "2001:db8:2::2"  # RFC 3849
# Real-time priorities, or start-up jitter dominates. The relay first: its lateness is the path's.
FIFO_RELAY, FIFO_CAPTURE, FIFO_ENDS = 60, 55, 50
LATE_LIMIT_US = 300  # Ours: beyond it a run says more about the machine than about TCP
COUNTERS = ("Tcp RetransSegs", "TcpExt TCPLostRetransmit", "TcpExt TCPFastRetrans",
            "TcpExt TCPSlowStartRetrans", "TcpExt TCPTimeouts", "TcpExt TCPLossProbes",
            "TcpExt TCPSpuriousRTOs", "TcpExt TCPDSACKRecv", "TcpExt TCPSynRetrans")


class TooLate(RuntimeError):
    """The relay did not keep its times."""


def repeat_when_late(make, attempts=6):
    """Makes something, again if the relay was late."""
    for attempt in range(1, attempts + 1):
        try:
            return make()
        except TooLate as late:
            print(f"attempt {attempt} of {attempts}: {late}")
    raise SystemExit("no attempt kept its times; try again on a quieter machine")


def as_argument(path):
    """One direction's configuration as `relay.c` reads it."""
    per_kbyte = int(8e6 / path["rate_mbit"]) if "rate_mbit" in path else 0
    drops = ",".join(map(str, path.get("drop_data", [])))
    return (f"{int(path.get('delay_ms', 0) * 1000)}:{per_kbyte}:{path.get('queue_packets', 10_000)}:"
            f"{int(path.get('loss', 0) * 1e6)}:{int(path.get('loss_of_all', 0) * 1e6)}:{path.get('seed', 1)}:{drops}")


class Path(netns.Net):
    """Namespaces joined by a relay, with a scratch directory for what the programs say."""

    def __init__(self, *names):
        super().__init__(*names)
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="tcpwhy-make-"))
        self.relay, self.directions = None, []

    def __exit__(self, *error):
        super().__exit__(*error)
        shutil.rmtree(self.scratch)

    def link(self, name, a, dev_a, b, dev_b, a_to_b, b_to_a):
        """One link as `relay.c` wants it, with the names of its directions."""
        return ([f"{name} {a} to {b}", f"{name} {b} to {a}"],
                [self.full(a), dev_a, self.full(b), dev_b, as_argument(a_to_b), as_argument(b_to_a)])

    def start_relay(self, *links):
        """Compiles and starts the relay; the devices exist when this returns."""
        program = self.scratch / "relay"
        netns.run(os.environ.get("CC", "cc"), "-O2", "-Wall", "-o", program, HERE / "relay.c")
        self.directions = [name for names, _ in links for name in names]
        self.relay = subprocess.Popen(
            ["chrt", "-f", str(FIFO_RELAY), program, *(argument for _, arguments in links for argument in arguments)],
            stdout=subprocess.PIPE, text=True)
        self.children.append(self.relay)
        if self.relay.stdout.readline() != "ready\n":
            raise RuntimeError("the relay did not start")

    def relay_report(self):
        """Ends the relay and returns, per direction, what it carried and lost.

        A run in which it was late is no truth about times: it is refused, to be repeated.
        """
        netns.stop(self.relay)
        report = dict(zip(self.directions, map(json.loads, self.relay.stdout.read().splitlines())))
        latest = max(direction["late_p99_us"] for direction in report.values())
        if latest > LATE_LIMIT_US:
            raise TooLate(f"the relay was up to {latest} us late (p99): too busy a machine")
        return report

    def serve(self, *options):
        """Starts the server; what it says lands in the scratch directory."""
        said = open(self.scratch / "server.said", "w", encoding="utf-8")
        self.start("server", sys.executable, HERE / "transfer.py", "serve", *options, fifo=FIFO_ENDS, stdout=said)
        netns.wait_until(lambda: "listening" in (self.scratch / "server.said").read_text(), "the server's start")

    def fetch(self, *options, timeout=120):
        """Runs the client to its end; returns the milliseconds of each answer."""
        said = self.run("client", "chrt", "-f", FIFO_ENDS, sys.executable, HERE / "transfer.py", "fetch", *options,
                        timeout=timeout)
        return [float(line) for line in said.split()]

    def warm_up(self, address):
        """Lets the neighbours find each other before the capture: a refused connection does it."""
        self.run("client", sys.executable, "-c",
                 f"import socket; print(socket.socket(socket.AF_INET{'6' if ':' in address else ''})"
                 f".connect_ex(('{address}', 9)))")

    def tcp_info(self, connections):
        """The server's TCP_INFO of each connection, waiting until it has them all."""
        said = self.scratch / "server.said"
        netns.wait_until(lambda: said.read_text(encoding="utf-8").count("\n") > connections,
                         "the server's account")
        return [json.loads(line) for line in said.read_text(encoding="utf-8").splitlines()[1:]]

    def counters(self, name):
        """The kernel's TCP counters of a namespace that are of interest, zeros left out."""
        found = {}
        for file in ("/proc/net/snmp", "/proc/net/netstat"):
            lines = self.run(name, "cat", file).splitlines()
            for names, values in zip(lines[::2], lines[1::2]):
                group = names.split(":")[0]
                for key, value in zip(names.split()[1:], values.split()[1:]):
                    if f"{group} {key}" in COUNTERS and int(value):
                        found[key] = int(value)
        return found


@contextlib.contextmanager
def direct(down, up, v6=False):
    """server -- client; `down` is the direction of the data."""
    with Path("server", "client") as path:
        path.start_relay(path.link("wire", "server", "eth0", "client", "eth0", down, up))
        both = (("server", SERVER, CLIENT, SERVER6, CLIENT6), ("client", CLIENT, SERVER, CLIENT6, SERVER6))
        for here, own, peer, own6, peer6 in both:
            path.run(here, "ip", "link", "set", "eth0", "txqueuelen", "10000")
            path.address(here, "eth0", f"{own}/32", f"{own6}/128")
            path.run(here, "ip", "route", "add", f"{peer}/32", "dev", "eth0")
            path.run(here, "ip", "-6", "route", "add", f"{peer6}/128", "dev", "eth0")
        path.warm_up(SERVER6 if v6 else SERVER)
        yield path


@contextlib.contextmanager
def edge(egress, down, up, initcwnd=None):
    """server -- edge -- client, with the server's egress path before the edge."""
    with Path("server", "edge", "client") as path:
        path.start_relay(
            path.link("egress", "server", "eth0", "edge", "tap", egress, {}),
            path.link("wire", "edge", "out", "client", "eth0", down, up))
        path.address("server", "eth0", f"{SERVER}/24")
        path.address("edge", "tap", "192.0.2.254/24")
        path.address("edge", "out", "198.51.100.254/24")
        path.address("client", "eth0", f"{CLIENT}/24")
        for name in ("server", "edge", "client"):
            for dev in {"server": ["eth0"], "edge": ["tap", "out"], "client": ["eth0"]}[name]:
                path.run(name, "ip", "link", "set", dev, "txqueuelen", "10000")
        path.run("edge", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        window = ["initcwnd", str(initcwnd)] if initcwnd else []
        path.run("server", "ip", "route", "add", "default", "via", "192.0.2.254", *window)
        path.run("client", "ip", "route", "add", "default", "via", "198.51.100.254")
        path.warm_up(SERVER)
        yield path


@contextlib.contextmanager
def captured(path, name, dev, file, *options, expression="tcp"):
    """A capture by tcpdump in nanoseconds, 100 bytes a packet; fails if it lost packets."""
    log = path.scratch / f"{pathlib.Path(file).name}.log"
    with open(log, "w", encoding="utf-8") as said:
        child = path.start(name, "tcpdump", "-n", "-i", dev, "-s", "100", "-B", "65536", "--immediate-mode",
                           "--time-stamp-precision=nano", "-Z", "root", "-w", file, *options, expression,
                           fifo=FIFO_CAPTURE, stderr=said)
    netns.wait_until(lambda: "listening on" in log.read_text(encoding="utf-8"), "the capture's start")
    time.sleep(0.2)
    yield
    time.sleep(0.3)
    netns.stop(child, signal.SIGINT)
    if "\n0 packets dropped by kernel" not in log.read_text(encoding="utf-8"):
        raise RuntimeError(f"the capture lost packets: {log.read_text(encoding='utf-8')}")


@contextlib.contextmanager
def retransmissions_traced(port):
    """Counts tcp_retransmit_skb events from a port in a tracefs instance of its own."""
    with tempfile.TemporaryDirectory(prefix="tcpwhy-trace-") as mount:
        netns.run("mount", "-t", "tracefs", "nodev", mount)
        instance = pathlib.Path(mount) / "instances" / f"tcpwhy{os.getpid()}"
        events = []
        try:
            instance.mkdir()
            event = instance / "events" / "tcp" / "tcp_retransmit_skb"
            (event / "filter").write_text(f"sport=={port}")
            (event / "enable").write_text("1")
            yield events
            (event / "enable").write_text("0")
            lines = (instance / "trace").read_text(encoding="utf-8").splitlines()
            events += [line for line in lines if "tcp_retransmit_skb:" in line]
        finally:
            if instance.exists():
                instance.rmdir()
            netns.run("umount", mount)


@contextlib.contextmanager
def routed(down, up, offloads):
    """server --veth-- router --relay-- client; with offloads the server's packets are up to 64 KB."""
    with Path("server", "router", "client") as path:
        path.veth("server", "eth0", "router", "in")
        state = "on" if offloads else "off"
        path.run("server", "ethtool", "-K", "eth0", "tx", state, "sg", state, "gso", state, "tso", state)
        path.start_relay(path.link("wire", "router", "out", "client", "eth0", down, up))
        path.address("server", "eth0", f"{SERVER}/24")
        path.address("router", "in", "192.0.2.254/24")
        path.address("router", "out", "198.51.100.254/24")
        path.address("client", "eth0", f"{CLIENT}/24")
        for name, dev in (("router", "out"), ("client", "eth0")):
            path.run(name, "ip", "link", "set", dev, "txqueuelen", "10000")
        path.run("router", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        path.run("server", "ip", "route", "add", "default", "via", "192.0.2.254")
        path.run("client", "ip", "route", "add", "default", "via", "198.51.100.254")
        path.warm_up(SERVER)
        yield path
