"""Network namespaces that are gone again afterwards, whatever happens.

The makers of captures and the benchmark run real Linux TCP between namespaces. This
file makes the namespaces, joins them, starts programs inside them and cleans up: on
leaving the `with` block every program started here is ended (by its own process id)
and every namespace made here is deleted, also after an exception or a signal.

Addresses exist only inside the namespaces. Needs root, iproute2 and Linux.
Left out: delay and loss; `relay.c` emulates the path, because not every kernel has netem.
"""

import os
import shutil
import signal
import subprocess
import time

class Net:
    """A set of namespaces with the programs that run in them."""

    def __init__(self, *names):
        self.prefix = f"tw{os.getpid()}"
        self.names = names
        self.children = []

    def full(self, name):
        """The name by which the kernel knows this namespace."""
        return f"{self.prefix}-{name}"

    def __enter__(self):
        if os.geteuid() != 0:
            raise SystemExit("network namespaces need root: run this as root")
        signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(SystemExit(143)))
        try:
            for name in self.names:
                run("ip", "netns", "add", self.full(name))
                self.run(name, "ip", "link", "set", "lo", "up")
                self.run(name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0",
                         "net.ipv6.conf.default.accept_dad=0", "net.ipv4.tcp_no_metrics_save=1")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for child in self.children:
            stop(child, grace_s=2)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", self.full(name)],
                           stderr=subprocess.DEVNULL, check=False)

    def veth(self, a, dev_a, b, dev_b):
        """Joins two namespaces by a veth pair whose packets are of wire size."""
        run("ip", "link", "add", dev_a, "netns", self.full(a), "type", "veth",
            "peer", "name", dev_b, "netns", self.full(b))
        for name, dev in ((a, dev_a), (b, dev_b)):
            self.run(name, "ethtool", "-K", dev, "tso", "off", "gso", "off", "gro", "off",
                     "tx", "off")
            self.run(name, "ip", "link", "set", dev, "up")

    def address(self, name, dev, *addresses):
        """Gives a device its addresses (documentation ranges, see the callers) and sets it up."""
        for address in addresses:
            nodad = ["nodad"] if ":" in address else []
            self.run(name, "ip", "addr", "add", address, "dev", dev, *nodad)
        self.run(name, "ip", "link", "set", dev, "up")

    def run(self, name, *command, timeout=60):
        """Runs a command inside a namespace to its end and returns what it printed."""
        return run("ip", "netns", "exec", self.full(name), *command, timeout=timeout)

    def start(self, name, *command, fifo=0, **keywords):
        """Starts a program inside a namespace; `fifo` is its real-time priority, 0 for none."""
        real_time = ["chrt", "-f", str(fifo)] if fifo else []
        child = subprocess.Popen(
            ["ip", "netns", "exec", self.full(name), *real_time, *map(str, command)],
            stdin=subprocess.DEVNULL, **keywords)
        self.children.append(child)
        return child


def run(*command, timeout=60):
    """Runs a command to its end; a failure carries what it said on stderr."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          timeout=timeout, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def need(*programs):
    """Ends with one sentence when a program is not installed."""
    absent = [program for program in programs if shutil.which(program) is None]
    if absent:
        raise SystemExit(f"not installed: {', '.join(absent)}; on Debian they are in the packages "
                         "iproute2, ethtool, procps, util-linux, tcpdump, wireshark-common, iperf3, gcc")


def stop(child, signal_number=signal.SIGTERM, grace_s=10):
    """Asks one of our programs to end, and insists after `grace_s`."""
    if child.poll() is None:
        child.send_signal(signal_number)
        try:
            child.wait(grace_s)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def wait_until(condition, what, timeout_s=10):
    """Waits for a condition, or says what did not happen."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not happen within {timeout_s} s")
        time.sleep(0.02)
