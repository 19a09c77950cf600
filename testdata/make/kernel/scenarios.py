"""The scenarios: one function a family, each giving plain dicts (fields: see `run`).

RTT is split over both directions. Rates are those of the configured qdisc at layer 2. `expect` names the limit that should dominate, in the words of
the product's states. `sender` is the side whose data the scenario is about."""
import copy

K, M = 1024, 1_000_000
FILE = 512 * K
OFF = "tso off gso off gro off"


def download(n=FILE, chunk=None, hdr=200, before="", **kw):
    """The server answers one request with n bytes and ends the connection."""
    w = f"w:{n}" + (f"/{chunk}" if chunk else "")
    f = {"server": f"h {before}hdr:{hdr} {w} info fin eof", "client": "req h eof"}
    f.update(kw)
    return f


def ends(rtt, limit=100000):
    """Delay on each host's own egress, so each tap is behind its own delay."""
    return {"server:eth0": f"root netem delay {rtt / 2}ms limit {limit}", "client:eth0": f"root netem delay {rtt / 2}ms limit {limit}"}


def one_router(rtt, limit=100000, fwd="", rev=""):
    """Delay in one router between the hosts; fwd/rev add netem arguments towards client / server."""
    return {"r1:c0": f"root netem delay {rtt / 2}ms {fwd} limit {limit}", "r1:s0": f"root netem delay {rtt / 2}ms {rev} limit {limit}"}


def two_routers(rtt, rate_mbit=None, queue=None, fwd="", rev="", burst=None, bottleneck=None, limit=100000):
    """r1 holds the bottleneck towards the client, r2 the forward delay and impairment; r1 delays the way back."""
    q = {"r2:c0": f"root netem delay {rtt / 2}ms {fwd} limit {limit}", "r1:s0": f"root netem delay {rtt / 2}ms {rev} limit {limit}"}
    if bottleneck:
        q["r1:c0"] = bottleneck
    elif rate_mbit:
        q["r1:c0"] = f"root tbf rate {rate_mbit}mbit burst {burst or 3028} limit {queue}"
    return q


# wire segmentation: the sender's tap keeps its super-segments, the routers see packets of one MTU
SEGMENT = {"r1:c0": OFF, "r1:s0": OFF, "r2:c0": OFF, "r2:s0": OFF}
HOSTS_OFF = {"server:eth0": OFF, "client:eth0": OFF}
# TCP always builds super-segments, with offloads off they are cut after the qdisc; this makes it send single segments, so that a local qdisc drops those
SINGLE = [("server", "ip link set dev eth0 gso_max_segs 1")]


def sc(name, about, expect, **kw):
    d = {"name": name, "about": about, "expect": expect, "topology": "two", "sender": "server", "cc": "cubic"}
    d.update(kw)
    if "offload" not in d and d["topology"] == "two":
        d["offload"] = SEGMENT
    return d


def sysctl(server=None, client=None):
    return {"server": server or {}, "client": client or {}}


def slow_start():
    for rtt in (6, 2, 20, 100):
        for n in (FILE,) if rtt != 6 else (FILE, 16 * K, 64 * K, 4 * M):
            size = "" if n == FILE else f"-{n // K}k"
            yield sc(f"slowstart-rtt{rtt}{size}", f"{n} B download, RTT {rtt} ms by netem on both hosts' egress (each tap behind its own delay), offloads on",
                     "cwnd.slow_start", topology="direct", rtt_ms=rtt, bytes=n, qdisc=ends(rtt), flows=[download(n)])
    yield sc("slowstart-rtt6-nooffload", "as slowstart-rtt6 with TSO, GSO and GRO off on both hosts", "cwnd.slow_start", topology="direct", rtt_ms=6, bytes=FILE,
             qdisc=ends(6), offload=HOSTS_OFF, flows=[download()])
    for rtt in (6, 20, 100):
        yield sc(f"slowstart-router-rtt{rtt}", f"512 KiB download, RTT {rtt} ms, delay only in the middle router", "cwnd.slow_start", topology="router", rtt_ms=rtt, bytes=FILE,
                 qdisc=one_router(rtt), offload={"r1:c0": OFF, "r1:s0": OFF}, flows=[download()])
    yield sc("slowstart-router-gro", "512 KiB download, RTT 20 ms in the router, GRO on at the client", "cwnd.slow_start", topology="router", rtt_ms=20, bytes=FILE,
             qdisc=one_router(20), offload={"r1:c0": OFF, "r1:s0": OFF, "client:eth0": "gro on"}, flows=[download()])
    for k, n in (("reno", FILE), ("bbr", FILE)):
        yield sc(f"slowstart-rtt6-{k}", f"512 KiB download, RTT 6 ms on both egresses, {k}", "cwnd.slow_start (bbr: pacing in its startup)", topology="direct", rtt_ms=6, bytes=n, cc=k,
                 qdisc=ends(6), flows=[download(n, server_opts=f"cc={k}")])
    yield sc("initcwnd100", "512 KiB download, RTT 6 ms on both egresses, route initcwnd 100 at the server, client default rmem (first flight stops at the 64 KB initial window)",
             "rwnd.autotune, then cwnd.slow_start", topology="direct", rtt_ms=6, bytes=FILE, qdisc=ends(6), route={"server": "initcwnd 100"}, flows=[download()])
    yield sc("initcwnd100-rmem6m", "as initcwnd100, client tcp_rmem 6 MB from the start", "cwnd.slow_start", topology="direct", rtt_ms=6, bytes=FILE, qdisc=ends(6),
             route={"server": "initcwnd 100"}, sysctl=sysctl(client={"net.ipv4.tcp_rmem": "6291456 6291456 6291456"}), flows=[download()])
    yield sc("initcwnd100-initrwnd", "as initcwnd100 with tcp_rmem 6 MB and initrwnd 500", "cwnd.slow_start", topology="direct", rtt_ms=6, bytes=FILE, qdisc=ends(6),
             route={"server": "initcwnd 100", "client": "initrwnd 500"}, sysctl=sysctl(client={"net.ipv4.tcp_rmem": "6291456 6291456 6291456"}), flows=[download()])
    yield sc("slowstart-middle-two", "4 MB download, RTT 20 ms, two routers without bottleneck, captured between them", "cwnd.slow_start", rtt_ms=20, bytes=4 * M,
             qdisc=two_routers(20), flows=[download(4 * M)])


def receive_window():
    for kb, rtt in ((8, 6), (16, 20), (64, 20), (64, 100)):
        yield sc(f"rwnd-cap-{kb}k-rtt{rtt}", f"2 MB download, client SO_RCVBUF {kb} KiB (kernel doubles it), RTT {rtt} ms", "rwnd.cap", topology="router", rtt_ms=rtt, bytes=2 * M,
                 qdisc=one_router(rtt), offload={"r1:c0": OFF, "r1:s0": OFF}, flows=[download(2 * M, client_opts=f"rcvbuf={kb * K}")])
    yield sc("rwnd-cap-rmem4096", "100 kB download, client tcp_rmem '4096 4096 4096', RTT 6 ms (article)", "rwnd.cap", topology="direct", rtt_ms=6, bytes=100_000, qdisc=ends(6),
             sysctl=sysctl(client={"net.ipv4.tcp_rmem": "4096 4096 4096"}), flows=[download(100_000)])
    yield sc("rwnd-cap-clamp", "4 MB download, client TCP_WINDOW_CLAMP 48 KiB, RTT 20 ms", "rwnd.cap", topology="router", rtt_ms=20, bytes=4 * M, qdisc=one_router(20),
             offload={"r1:c0": OFF, "r1:s0": OFF}, flows=[download(4 * M, client_opts="clamp=49152")])
    for rtt in (100, 200):
        yield sc(f"rwnd-autotune-rtt{rtt}", f"20 MB download, default rmem, RTT {rtt} ms, 1 Gbit/s", "rwnd.autotune (then rwnd.cap at 6 MB)", rtt_ms=rtt, rate_mbit=1000, bytes=20 * M,
                 qdisc=two_routers(rtt, 1000, 20_000_000, burst=125000), flows=[download(20 * M)])
    yield sc("rwnd-autotune-initcwnd", "8 MB download, default rmem, RTT 50 ms, server initcwnd 300: the receiver's autotuning follows", "rwnd.autotune", rtt_ms=50, bytes=8 * M,
             qdisc=two_routers(50), route={"server": "initcwnd 300"}, flows=[download(8 * M)])
    yield sc("rwnd-reader-slow", "4 MB download, the client reads 16 KiB every 10 ms (1.6 MB/s), RTT 10 ms, default buffers", "rwnd.reader", topology="router", rtt_ms=10, bytes=4 * M,
             qdisc=one_router(10), offload={"r1:c0": OFF, "r1:s0": OFF}, flows=[download(4 * M, client="req h eof/16384@10")])
    yield sc("rwnd-reader-slow-rcvbuf", "2 MB download, the client reads 16 KiB every 10 ms, SO_RCVBUF 64 KiB, RTT 10 ms", "rwnd.reader", topology="router", rtt_ms=10, bytes=2 * M,
             qdisc=one_router(10), offload={"r1:c0": OFF, "r1:s0": OFF}, flows=[download(2 * M, client="req h eof/16384@10", client_opts="rcvbuf=65536")])
    yield sc("zero-window-3s", "1 MB download, the client stops reading for 3 s after the header, SO_RCVBUF 64 KiB, RTT 10 ms", "zero_window", topology="router", rtt_ms=10, bytes=1 * M,
             qdisc=one_router(10), offload={"r1:c0": OFF, "r1:s0": OFF}, flows=[download(1 * M, client="req h s:3000 eof", client_opts="rcvbuf=65536")])
    yield sc("zero-window-3s-mid", "8 MB download, the client reads 2 MB, stops for 3 s, reads on; default buffers, RTT 10 ms", "zero_window", topology="router", rtt_ms=10, bytes=8 * M,
             qdisc=one_router(10), offload={"r1:c0": OFF, "r1:s0": OFF}, flows=[download(8 * M, client="req h r:2000000 s:3000 eof")])
    yield sc("zero-window-8192", "200 kB download, SO_RCVBUF 8192, the reader sleeps 3.5 s (probes by the persist timer)", "zero_window", topology="router", rtt_ms=6, bytes=200_000,
             qdisc=one_router(6), flows=[download(200_000, client="req h s:3500 eof", client_opts="rcvbuf=8192")])


def send_buffer():
    """With Nagle, a short tail that waits is extended by the next write without a look at the buffer's limit (tcp_sendmsg_locked checks it for new skbs
    only), so 6.1 goes far beyond SO_SNDBUF; with TCP_NODELAY the limit holds."""
    for kb, rtt, n, chunk, nodelay in ((16, 20, 2 * M, 16384, 1), (16, 6, 2 * M, 16384, 1), (64, 20, 4 * M, 16384, 1), (128, 100, 4 * M, 16384, 1), (16, 20, 2 * M, 1400, 1),
                                       (16, 20, 2 * M, 4096, 1), (16, 20, 4 * M, 65536, 1), (16, 20, 4 * M, 4 * M, 1), (16, 20, 2 * M, 16384, 0), (16, 20, 2 * M, 1400, 0)):
        yield sc(f"sndbuf-{kb}k-rtt{rtt}-write{chunk}{'' if nodelay else '-nagle'}", f"{n} B download, server SO_SNDBUF {kb} KiB (kernel doubles it), writes of {chunk} B, TCP_NODELAY {nodelay}, RTT {rtt} ms, 100 Mbit/s",
                 "sndbuf", rtt_ms=rtt, rate_mbit=100, bytes=n, qdisc=two_routers(rtt, 100, 2_000_000), flows=[download(n, chunk, server_opts=f"sndbuf={kb * K},nodelay={nodelay}")])
    yield sc("sndbuf-wmem4096", "2 MB download, server tcp_wmem '4096 4096 4096', RTT 6 ms (article), 64 KiB writes", "sndbuf", topology="direct", rtt_ms=6, bytes=2 * M, qdisc=ends(6),
             sysctl=sysctl(server={"net.ipv4.tcp_wmem": "4096 4096 4096"}), flows=[download(2 * M, 65536, server_opts="nodelay=1")])
    yield sc("sndbuf-default-rtt200", "20 MB download, default wmem (4 MB), client rmem 32 MB, RTT 200 ms, 1 Gbit/s", "sndbuf (4 MB wmem) after slow start", rtt_ms=200, rate_mbit=1000, bytes=20 * M,
             sysctl=sysctl(client={"net.ipv4.tcp_rmem": "4096 33554432 33554432", "net.ipv4.tcp_wmem": "4096 16384 4194304"}),
             qdisc=two_routers(200, 1000, 20_000_000, burst=125000), flows=[download(20 * M)])


def random_loss():
    for cc in ("reno", "cubic"):
        for pct in (0.5, 2):
            for rtt in (20,) if pct == 2 else (20, 60):
                yield sc(f"loss-random-{pct}pct-{cc}-rtt{rtt}", f"20 MB download, {pct} % random loss towards the client (in r2, one MTU at a time), RTT {rtt} ms, {cc}",
                         "recovery.loss and cwnd.avoidance/post_loss (random loss)", rtt_ms=rtt, loss=pct / 100, bytes=20 * M, cc=cc, qdisc=two_routers(rtt, fwd=f"loss {pct}%"),
                         flows=[download(20 * M, server_opts=f"cc={cc}")])
    yield sc("loss-random-0.1pct-bbr", "20 MB download, 0.1 % random loss, RTT 20 ms, bbr, 50 Mbit/s bottleneck", "pacing / bandwidth", rtt_ms=20, rate_mbit=50, loss=0.001, bytes=20 * M, cc="bbr",
             qdisc=two_routers(20, 50, 500_000, fwd="loss 0.1%"), flows=[download(20 * M, server_opts="cc=bbr")])
    yield sc("loss-random-0.1pct-small", "4 MB download, 0.1 % random loss, RTT 20 ms, cubic", "cwnd, recovery.loss", rtt_ms=20, loss=0.001, bytes=4 * M, qdisc=two_routers(20, fwd="loss 0.1%"), flows=[download(4 * M)])
    yield sc("loss-burst-gemodel", "20 MB download, Gilbert-Elliott loss (p 0.2 %, r 25 %), RTT 20 ms, cubic", "recovery.loss, rto_wait", rtt_ms=20, bytes=20 * M,
             qdisc=two_routers(20, fwd="loss gemodel 0.2% 25% 100% 0%"), flows=[download(20 * M)])
    yield sc("loss-ack-10pct", "4 MB download, 10 % of the ACKs lost, RTT 20 ms", "cwnd.slow_start, no loss of data", rtt_ms=20, bytes=4 * M, qdisc=two_routers(20, rev="loss 10%"), flows=[download(4 * M)])
    for tag, setup, words in (("", SINGLE, "single segments"), ("-gso", [], "super-segments are lost as a whole")):
        yield sc(f"loss-before-tap{tag}", f"8 MB download, 0.5 % loss by netem on the server's own egress (before its tap), {words}, RTT 20 ms", "recovery.loss (before the tap)", rtt_ms=20, loss=0.005, bytes=8 * M,
                 drops_before_tap=True, topology="direct", setup=setup, offload=HOSTS_OFF, qdisc={"server:eth0": "root netem delay 10ms loss 0.5% limit 100000", "client:eth0": "root netem delay 10ms limit 100000"},
                 flows=[download(8 * M)])
    for tag, opt in (("notimestamps", {"net.ipv4.tcp_timestamps": 0}), ("nosack", {"net.ipv4.tcp_sack": 0})):
        yield sc(f"loss-random-1pct-{tag}", f"8 MB download, 1 % random loss, RTT 20 ms, {tag}", "recovery.loss and cwnd.avoidance", rtt_ms=20, loss=0.01, bytes=8 * M,
                 sysctl=sysctl(server=opt, client=opt), qdisc=two_routers(20, fwd="loss 1%"), flows=[download(8 * M)])


def bottleneck():
    for tag, queue in (("smallq", 30_000), ("bdpq", 100_000), ("largeq", 1_000_000)):
        for cc in ("cubic", "reno"):
            if tag == "bdpq" and cc == "reno":
                continue
            yield sc(f"bottleneck-20mbit-{tag}-{cc}", f"20 MB download through a 20 Mbit/s drop-tail bottleneck, queue {queue} B, RTT 40 ms, {cc}", "bandwidth.self_queue, with congestion loss",
                     rtt_ms=40, rate_mbit=20, queue_bytes=queue, bytes=20 * M, cc=cc, qdisc=two_routers(40, 20, queue), flows=[download(20 * M, server_opts=f"cc={cc}")])
    yield sc("bottleneck-20mbit-bbr", "20 MB download through a 20 Mbit/s bottleneck, queue 400 kB, RTT 40 ms, bbr", "bandwidth / pacing", rtt_ms=40, rate_mbit=20, queue_bytes=400_000, bytes=20 * M, cc="bbr",
             qdisc=two_routers(40, 20, 400_000), flows=[download(20 * M, server_opts="cc=bbr")])
    yield sc("bottleneck-5mbit-noloss", "4 MB download through 5 Mbit/s, queue 8 MB (never overflows), RTT 20 ms", "bandwidth.self_queue without loss", rtt_ms=20, rate_mbit=5, queue_bytes=8_000_000, bytes=4 * M,
             qdisc=two_routers(20, 5, 8_000_000), flows=[download(4 * M)])
    yield sc("bottleneck-100mbit", "40 MB download through 100 Mbit/s, queue 500 kB, RTT 10 ms", "bandwidth.self_queue", rtt_ms=10, rate_mbit=100, queue_bytes=500_000, bytes=40 * M,
             qdisc=two_routers(10, 100, 500_000), flows=[download(40 * M)])
    yield sc("local-tbf-8mbit", "2.5 MB download, tbf 8 Mbit/s on the server's own egress (before its tap), delay 20 ms in the router", "local_qdisc", topology="router", rtt_ms=20, rate_mbit=8, bytes=2_500_000,
             qdisc={**one_router(20), "server:eth0": "root tbf rate 8mbit burst 10000 limit 1000000"}, offload={"r1:c0": OFF, "r1:s0": OFF}, flows=[download(2_500_000)])
    yield sc("local-tbf-8mbit-drops", "4 MB download, tbf 8 Mbit/s with a queue of 60 kB on the server's own egress, delay 20 ms in the router", "local_qdisc (TSQ keeps the queue below 60 kB: no loss)", topology="router",
             rtt_ms=20, rate_mbit=8, bytes=4 * M, drops_before_tap=True, qdisc={**one_router(20), "server:eth0": "root tbf rate 8mbit burst 10000 limit 60000"}, offload={"r1:c0": OFF, "r1:s0": OFF},
             flows=[download(4 * M)])
    yield sc("local-htb-fqcodel-8mbit", "2.5 MB download, htb 8 Mbit/s with fq_codel on the server's own egress, 20 ms in the router", "local_qdisc", topology="router", rtt_ms=20, rate_mbit=8, bytes=2_500_000, drops_before_tap=True,
             qdisc={**one_router(20), "server:eth0": "root handle 1: htb default 1"},
             setup=[("server", "tc class add dev eth0 parent 1: classid 1:1 htb rate 8mbit"), ("server", "tc qdisc add dev eth0 parent 1:1 fq_codel")], offload={"r1:c0": OFF, "r1:s0": OFF}, flows=[download(2_500_000)])
    yield sc("policer-10mbit", "10 MB download through a 10 Mbit/s policer (tbf, burst 60 kB, queue of one packet), RTT 20 ms", "bandwidth.policer", rtt_ms=20, rate_mbit=10, bytes=10 * M,
             qdisc=two_routers(20, bottleneck="root tbf rate 10mbit burst 60000 limit 61600"), flows=[download(10 * M)])
    yield sc("policer-act-10mbit", "10 MB download through a 10 Mbit/s policer (action police, burst 60 kB, no queue at all), RTT 20 ms", "bandwidth.policer", rtt_ms=20, rate_mbit=10, bytes=10 * M,
             qdisc=two_routers(20), setup=[("r2", "tc qdisc add dev s0 ingress"), ("r2", "tc filter add dev s0 parent ffff: matchall action police rate 10mbit burst 60k conform-exceed drop")],
             flows=[download(10 * M)])
    yield sc("cross-two-flows", "two 10 MB downloads share 20 Mbit/s, queue 150 kB, RTT 40 ms; the second starts 1 s later, same hosts", "bandwidth.external / self_queue", rtt_ms=40, rate_mbit=20, bytes=10 * M,
             qdisc=two_routers(40, 20, 150_000), flows=[download(10 * M), download(10 * M, start_ms=1000)])
    yield sc("cross-external", "8 MB download shares 20 Mbit/s with a long flow that the hosts' taps do not see (r1 to r2, started 3 s earlier)", "bandwidth.external", rtt_ms=40, rate_mbit=20, bytes=8 * M,
             qdisc=two_routers(40, 20, 400_000), flows=[download(8 * M, start_ms=3000), download(30 * M, server_node="r1", client_node="r2", port=9000)])
    yield sc("ecn-fqcodel", "20 MB download, 20 Mbit/s (tbf) with fq_codel ecn below it, tcp_ecn=1, RTT 40 ms", "recovery.ecn / bandwidth", rtt_ms=40, rate_mbit=20, bytes=20 * M,
             sysctl=sysctl({"net.ipv4.tcp_ecn": 1}, {"net.ipv4.tcp_ecn": 1}),
             qdisc={**two_routers(40), "r1:c0": ["root handle 1: tbf rate 20mbit burst 3028 limit 1000000", "parent 1:1 fq_codel ecn"]}, flows=[download(20 * M)])
    yield sc("rate-variable", "10 MB download, bottleneck changes 20 -> 5 -> 20 Mbit/s at 1.5 s and 4 s, queue 200 kB, RTT 40 ms", "bandwidth.variable", rtt_ms=40, rate_mbit=20, bytes=10 * M,
             qdisc=two_routers(40, 20, 200_000), events=[[1500, "r1", "tc qdisc change dev c0 root tbf rate 5mbit burst 3028 limit 200000"],
                                                        [4000, "r1", "tc qdisc change dev c0 root tbf rate 20mbit burst 3028 limit 200000"]], flows=[download(10 * M)])


def application():
    two = f"h hdr:200 w:{FILE} s:2000 w:{FILE} info fin eof"
    for tag, value in (("on", 1), ("off", 0)):
        yield sc(f"idle-restart-{tag}", f"two 512 KiB writes 2 s apart, tcp_slow_start_after_idle={value}, RTT 6 ms on both egresses", "idle.app_think; then cwnd.after_idle" if value else "idle.app_think",
                 topology="direct", rtt_ms=6, bytes=2 * FILE, qdisc=ends(6), sysctl=sysctl({"net.ipv4.tcp_slow_start_after_idle": value}), flows=[download(server=two)])
    yield sc("idle-restart-500ms", "two 512 KiB writes 0.5 s apart, restart on, RTT 6 ms", "idle.app_think; cwnd.after_idle", topology="direct", rtt_ms=6, bytes=2 * FILE, qdisc=ends(6),
             flows=[download(server=two.replace("s:2000", "s:500"))])
    yield sc("idle-restart-100ms", "two 512 KiB writes 0.1 s apart (shorter than the RTO: no restart), RTT 6 ms", "idle.app_think", topology="direct", rtt_ms=6, bytes=2 * FILE, qdisc=ends(6),
             flows=[download(server=two.replace("s:2000", "s:100"))])
    yield sc("reqresp-think50", "20 requests on one connection, the server thinks 50 ms, answers 20 kB, RTT 20 ms", "idle.app_think (server)", topology="router", rtt_ms=20, bytes=20 * 20_000, qdisc=one_router(20),
             flows=[{"server": "x20( h s:50 hdr:200 w:20000 ) info eof", "client": "x20( req h r:20000 ) s:5 fin eof", "server_opts": "nodelay=1"}])
    yield sc("keepalive-think500", "10 requests on one connection, the client thinks 500 ms between them, answers 100 kB, RTT 20 ms", "idle.peer_think (client)", topology="router", rtt_ms=20, bytes=10 * 100_000,
             qdisc=one_router(20), flows=[{"server": "x10( h hdr:200 w:100000 ) info eof", "client": "x10( req h r:100000 s:500 ) fin eof"}])
    for tag, nodelay, expect in (("", 1, "idle.peer_think / last_flight: one round trip a request"), ("-nagle", 0, "nagle (header and body written separately: a second round trip a request, no delayed ACK)")):
        yield sc(f"reqresp-serial{tag}", f"50 requests one after the other, answers of 8 kB at once, TCP_NODELAY {nodelay}, RTT 50 ms", expect, topology="router", rtt_ms=50, bytes=50 * 8000, qdisc=one_router(50),
                 flows=[{"server": "x50( h hdr:200 w:8000 ) info eof", "client": "x50( req h r:8000 ) fin eof", "server_opts": f"nodelay={nodelay}"}])
        yield sc(f"app-paced-8k-20ms{tag}", f"2 MB download written 8 KB each 20 ms, TCP_NODELAY {nodelay}, RTT 20 ms", "app", topology="router", rtt_ms=20, bytes=2 * M, qdisc=one_router(20),
                 flows=[download(server="h hdr:200 w:2000000/8192@20 info fin eof", server_opts=f"nodelay={nodelay}")])
    yield sc("app-paced-8k-20ms-rtt100", "2 MB download written 8 KB each 20 ms, TCP_NODELAY, RTT 100 ms", "app", topology="router", rtt_ms=100, bytes=2 * M, qdisc=one_router(100), flows=[download(server="h hdr:200 w:2000000/8192@20 info fin eof", server_opts="nodelay=1")])
    yield sc("app-paced-100k-100ms", "4 MB download written 100 kB each 100 ms, RTT 20 ms", "app", topology="router", rtt_ms=20, bytes=4 * M, qdisc=one_router(20), flows=[download(server="h hdr:200 w:4000000/100000@100 info fin eof")])
    yield sc("app-slow-cpu", "4 MB download, 64 KiB writes with 5 ms of work after each, RTT 6 ms", "app", topology="router", rtt_ms=6, bytes=4 * M, qdisc=one_router(6), flows=[download(server="h hdr:200 w:4000000/65536@5 info fin eof", server_opts="nodelay=1")])
    yield sc("nagle-delack", "100 times: write 100 B, write 100 B, read the answer; Nagle on; delayed ACK at the peer", "nagle_delack", topology="router", rtt_ms=6, bytes=100 * 200, sender="client", qdisc=one_router(6),
             flows=[{"server": "x100( r:200 w:50 ) info eof", "client": "x100( w:200/100 r:50 ) info fin eof"}])
    yield sc("nagle-delack-nodelay", "as nagle-delack with TCP_NODELAY at the client", "idle (request/response)", topology="router", rtt_ms=6, bytes=100 * 200, sender="client", qdisc=one_router(6),
             flows=[{"server": "x100( r:200 w:50 ) info eof", "client": "x100( w:200/100 r:50 ) info fin eof", "client_opts": "nodelay=1"}])
    yield sc("nagle-server-hdr", "20 requests; the server writes a header of 200 B and a body of 300 B separately, Nagle on, RTT 6 ms", "nagle_delack", topology="router", rtt_ms=6, bytes=20 * 500, qdisc=one_router(6),
             flows=[{"server": "x20( h hdr:200 w:300 ) info eof", "client": "x20( req h r:300 ) fin eof"}])
    yield sc("app-window-65535", "4 MB download in which the server waits for a 13-byte credit of the client after each 65,535 B (HTTP/2-like), RTT 40 ms", "app_window (truth: app.peer)", topology="router", rtt_ms=40, bytes=60 * 65535, qdisc=one_router(40),
             flows=[{"server": "h hdr:200 w:65535 x59( r:13 w:65535 ) info eof", "client": "req h x60( r:65535 w:13 ) fin eof"}])
    yield sc("upload-500k", "POST of 500 kB by the client, RTT 20 ms", "cwnd.slow_start (client sends)", topology="router", rtt_ms=20, bytes=500_000, sender="client", qdisc=one_router(20),
             offload={"r1:c0": OFF, "r1:s0": OFF}, flows=[{"server": "h r:500000 hdr:100 info eof", "client": "post:500000 w:500000/16384 h info fin eof"}])
    yield sc("upload-500k-ends", "POST of 500 kB by the client, RTT 6 ms on both egresses", "cwnd.slow_start (client sends)", topology="direct", rtt_ms=6, bytes=500_000, sender="client", qdisc=ends(6),
             flows=[{"server": "h r:500000 hdr:100 info eof", "client": "post:500000 w:500000/16384 h info fin eof"}])
    yield sc("upload-slow-uplink", "POST of 2 MB, 2 Mbit/s in the router towards the server, queue 100 kB, RTT 30 ms", "bandwidth.self_queue (client sends)", rtt_ms=30, rate_mbit=2, bytes=2 * M, sender="client",
             qdisc={"r2:c0": "root netem delay 15ms limit 100000", "r1:s0": "root netem delay 15ms limit 100000", "r2:s0": "root tbf rate 2mbit burst 3028 limit 100000"},
             flows=[{"server": "h r:2000000 hdr:100 info eof", "client": "post:2000000 w:2000000/16384 h info fin eof"}])
    yield sc("reset-midway", "the client resets the connection after 300 kB of 4 MB, RTT 20 ms", "cwnd.slow_start, ends by reset", topology="router", rtt_ms=20, reset=True, qdisc=one_router(20),
             flows=[download(4 * M, client="req h r:300000 rst")])


DROP = "iptables-legacy -A FORWARD -p tcp --sport 8000 -m u32 --u32 \"0&0xFFFF=100:65535\" -m statistic --mode nth --every 100000000 --packet {} -j DROP"


def single_losses():
    """Exactly named data packets are dropped in r2."""
    def drops(*packets):
        return [("r2", "sh -c '" + "; ".join(DROP.format(p) for p in packets) + "'")] if packets else []
    yield sc("syn-loss", "512 KiB download, the first SYN is lost (1 s), RTT 20 ms", "syn_retry", rtt_ms=20, bytes=FILE, qdisc=two_routers(20),
             setup=[("r2", "iptables-legacy -A FORWARD -p tcp --tcp-flags SYN,ACK SYN -m statistic --mode nth --every 100000 --packet 0 -j DROP")], flows=[download()])
    yield sc("synack-loss", "512 KiB download, the first SYN-ACK is lost, RTT 20 ms", "syn_retry", rtt_ms=20, bytes=FILE, qdisc=two_routers(20), synack_retry=True,
             setup=[("r2", "iptables-legacy -A FORWARD -p tcp --tcp-flags SYN,ACK SYN,ACK -m statistic --mode nth --every 100000 --packet 0 -j DROP")], flows=[download()])
    # the header is data packet 0; 20 kB are packets 1 to 14, 512 KiB packets 1 to 363
    yield sc("loss-one-early", "512 KiB download, data packet 5 lost (fast retransmit in the first flight), RTT 20 ms", "recovery.loss, cwnd", rtt_ms=20, bytes=FILE, qdisc=two_routers(20), setup=drops(5), flows=[download()])
    yield sc("loss-one-mid", "512 KiB download, data packet 100 lost, RTT 20 ms", "recovery.loss, cwnd.post_loss", rtt_ms=20, bytes=FILE, qdisc=two_routers(20), setup=drops(100), flows=[download()])
    yield sc("loss-tail-tlp", "20 kB download, the last data packet lost: tail loss probe, RTT 20 ms", "tlp_wait", rtt_ms=20, bytes=20_000, qdisc=two_routers(20), setup=drops(14), flows=[download(20_000)])
    yield sc("loss-tail-many", "20 kB download, the last three data packets lost, RTT 20 ms", "tlp_wait, recovery.loss", rtt_ms=20, bytes=20_000, qdisc=two_routers(20), setup=drops(12, 12, 12), flows=[download(20_000)])
    yield sc("loss-tail-rto", "20 kB download, the last data packet, its probe and the first repeat lost, RTT 20 ms", "rto_wait", rtt_ms=20, bytes=20_000, qdisc=two_routers(20), setup=drops(14, 14, 14), flows=[download(20_000)])
    yield sc("loss-single-packet-rto", "800 B answer, lost three times: RTO with backoff, RTT 20 ms", "tlp_wait, rto_wait", rtt_ms=20, bytes=800, qdisc=two_routers(20), setup=drops(0, 0, 0), flows=[{"server": "h w:800 info fin eof", "client": "req r:800 eof"}])
    yield sc("loss-retransmission", "512 KiB download, packet 100 lost, and its retransmission as well: RTT 20 ms", "recovery.loss, rto_wait or RACK", rtt_ms=20, bytes=FILE, qdisc=two_routers(20),
             setup=drops(100, 159), flows=[download()])
    yield sc("blackout-1s", "8 MB download through 20 Mbit/s, everything lost for 1 s at 1 s, RTT 20 ms", "rto_wait", rtt_ms=20, rate_mbit=20, bytes=8 * M, qdisc=two_routers(20, 20, 100_000),
             events=[[1000, "r2", "tc qdisc change dev c0 root netem delay 10ms loss 100% limit 100000"], [2000, "r2", "tc qdisc change dev c0 root netem delay 10ms loss 0% limit 100000"]], flows=[download(8 * M)])
    for tag, share, ms in (("2pct-10ms", 98, 10), ("10pct-1ms", 90, 1), ("2pct-4ms", 98, 4)):
        yield sc(f"reorder-{tag}", f"8 MB download, {100 - share} % of the packets come {ms} ms later than their successors (netem reorder), 100 Mbit/s, RTT 20 ms (of the others)", "recovery.reorder_spurious", rtt_ms=20, rate_mbit=100, bytes=8 * M,
                 qdisc={"r1:s0": "root netem delay 20ms limit 100000", "r1:c0": "root tbf rate 100mbit burst 3028 limit 400000", "r2:c0": f"root netem delay {ms}ms reorder {share}% limit 100000"}, flows=[download(8 * M)])
    yield sc("reorder-jitter", "8 MB download, netem delay 10 ms +- 3 ms (reorders), 50 Mbit/s, RTT 20 ms", "recovery.reorder_spurious", rtt_ms=20, rate_mbit=50, bytes=8 * M,
             qdisc={"r1:s0": "root netem delay 10ms limit 100000", "r1:c0": "root tbf rate 50mbit burst 3028 limit 200000", "r2:c0": "root netem delay 10ms 3ms limit 100000"}, flows=[download(8 * M)])
    yield sc("duplicate-1pct", "4 MB download, 1 % of packets duplicated by netem, RTT 20 ms", "cwnd.slow_start", rtt_ms=20, bytes=4 * M, qdisc=two_routers(20, fwd="duplicate 1%"), flows=[download(4 * M)])


def others():
    yield sc("bbr-rtt20-50mbit", "20 MB download, bbr (paced), 50 Mbit/s, queue 250 kB, RTT 20 ms", "bandwidth / pacing", rtt_ms=20, rate_mbit=50, bytes=20 * M, cc="bbr", qdisc=two_routers(20, 50, 250_000),
             flows=[download(20 * M, server_opts="cc=bbr")])
    yield sc("fq-maxrate-20mbit", "8 MB download, SO_MAX_PACING_RATE 2.5 MB/s with fq at the server, RTT 20 ms", "pacing (truth: tsq, since fq holds the packets)", rtt_ms=20, bytes=8 * M, pacing_Bps=2_500_000,
             qdisc={**two_routers(20), "server:eth0": "root fq"}, flows=[download(8 * M, server_opts="pacing=2500000")])
    yield sc("tcp-pacing-20mbit", "8 MB download, SO_MAX_PACING_RATE 2.5 MB/s by TCP's own timer (no fq), RTT 20 ms", "pacing", rtt_ms=20, bytes=8 * M, pacing_Bps=2_500_000, qdisc=two_routers(20),
             flows=[download(8 * M, server_opts="pacing=2500000")])
    yield sc("fq-cubic", "4 MB download, cubic with fq at the server (paced slow start), RTT 20 ms", "cwnd.slow_start", rtt_ms=20, bytes=4 * M, qdisc={**two_routers(20), "server:eth0": "root fq"}, flows=[download(4 * M)])
    yield sc("cached-ssthresh", "three downloads of 2 MB in a row, tcp_no_ssthresh_metrics_save=0, 2 % loss until the second begins, RTT 20 ms; look at connection 2 and 3", "cwnd.cached_ssthresh", rtt_ms=20, bytes=3 * 2 * M,
             sysctl=sysctl({"net.ipv4.tcp_no_ssthresh_metrics_save": 0}), qdisc=two_routers(20, fwd="loss 2%"),
             flows=[{"server": "h hdr:200 w:2000000 info fin eof", "client": "req h eof", "server_opts": "conns=3", "client_opts": "conns=3,gap=1000"}])
    yield sc("cwnd-clamp", "two downloads of 8 MB in a row, route cwnd lock 30 at the server (snd_cwnd_clamp; it acts once tcp_metrics knows the peer), RTT 20 ms; look at connection 2", "cwnd.clamp", rtt_ms=20, bytes=16 * M,
             qdisc=two_routers(20), route={"server": "cwnd lock 30"}, flows=[download(8 * M, server_opts="conns=2", client_opts="conns=2,gap=100")])
    for tag, opt in (("nowscale", {"net.ipv4.tcp_window_scaling": 0}), ("notimestamps", {"net.ipv4.tcp_timestamps": 0}), ("nosack", {"net.ipv4.tcp_sack": 0})):
        yield sc(f"{tag}-4m", f"4 MB download, {tag}, RTT 20 ms", "rwnd.cap (64 KB)" if tag == "nowscale" else "cwnd.slow_start", rtt_ms=20, bytes=4 * M, sysctl=sysctl(opt, opt), qdisc=two_routers(20), flows=[download(4 * M)])
    yield sc("ipv6-512k", "512 KiB download over IPv6, RTT 6 ms on both egresses", "cwnd.slow_start", topology="direct", ip=6, rtt_ms=6, bytes=FILE, qdisc=ends(6), flows=[download()])
    yield sc("ipv6-loss", "8 MB download over IPv6, 0.5 % loss in r2, RTT 20 ms", "recovery.loss, cwnd", ip=6, rtt_ms=20, loss=0.005, bytes=8 * M, qdisc=two_routers(20, fwd="loss 0.5%"), flows=[download(8 * M)])
    yield sc("hystart-100mbit", "20 MB download, 100 Mbit/s, queue 4 MB, RTT 60 ms: does HyStart end slow start?", "cwnd.slow_start, then cwnd.avoidance / bandwidth", rtt_ms=60, rate_mbit=100, bytes=20 * M,
             qdisc=two_routers(60, 100, 4_000_000), flows=[download(20 * M)])
    yield sc("lowat-download", "20 MB download with TCP_NOTSENT_LOWAT 16 KiB, 50 Mbit/s, RTT 20 ms", "bandwidth.self_queue", rtt_ms=20, rate_mbit=50, bytes=20 * M, qdisc=two_routers(20, 50, 200_000),
             flows=[download(20 * M, 16384, server_opts="lowat=16384")])
    yield sc("mss-536", "1 MB download, MTU 576 at the client side (MSS 536 advertised), RTT 20 ms", "cwnd.slow_start", topology="router", rtt_ms=20, bytes=1 * M, qdisc=one_router(20), route={"client": "advmss 536"},
             offload={"r1:c0": OFF, "r1:s0": OFF}, flows=[download(1 * M)])
    yield sc("parallel-6", "six connections at once, 500 kB each, 50 Mbit/s, queue 200 kB, RTT 30 ms", "cwnd / bandwidth shared", rtt_ms=30, rate_mbit=50, bytes=500_000, qdisc=two_routers(30, 50, 200_000),
             flows=[download(500_000) for _ in range(6)])


def lagging_tap():
    """The same limits with half the RTT on the sender's own egress: the tap is behind it, so the tap's clock is not the stack's."""
    lag = {"server:eth0": "root netem delay 10ms limit 100000", "r2:c0": "root netem delay 0ms limit 100000", "r1:s0": "root netem delay 10ms limit 100000"}
    def q(**more):
        return {**lag, **{k.replace("_", ":"): v for k, v in more.items()}}
    yield sc("lag-rwnd-cap", "2 MB download, SO_RCVBUF 64 KiB, RTT 20 ms, half of it on the server's own egress", "rwnd.cap", rtt_ms=20, bytes=2 * M, qdisc=q(), flows=[download(2 * M, client_opts="rcvbuf=65536")])
    yield sc("lag-rwnd-reader", "4 MB download, reader takes 16 KiB every 10 ms, RTT 20 ms, half of it on the server's own egress", "rwnd.reader", rtt_ms=20, bytes=4 * M, qdisc=q(), flows=[download(4 * M, client="req h eof/16384@10")])
    yield sc("lag-sndbuf", "2 MB download, SO_SNDBUF 16 KiB, TCP_NODELAY, 16 KiB writes, RTT 20 ms, half of it on the server's own egress", "sndbuf", rtt_ms=20, bytes=2 * M, qdisc=q(),
             flows=[download(2 * M, 16384, server_opts="sndbuf=16384,nodelay=1")])
    yield sc("lag-app-paced", "2 MB download written 8 KB each 20 ms, RTT 20 ms, half of it on the server's own egress", "app", rtt_ms=20, bytes=2 * M, qdisc=q(), flows=[download(server="h hdr:200 w:2000000/8192@20 info fin eof", server_opts="nodelay=1")])
    yield sc("lag-reqresp", "20 requests, server thinks 50 ms, RTT 20 ms, half of it on the server's own egress", "idle.app_think", rtt_ms=20, bytes=20 * 20_000, qdisc=q(),
             flows=[{"server": "x20( h s:50 hdr:200 w:20000 ) info eof", "client": "x20( req h r:20000 ) s:5 fin eof", "server_opts": "nodelay=1"}])
    yield sc("lag-loss-after", "8 MB download, 0.5 % loss in r2 (after the tap), RTT 20 ms, half of it on the server's own egress", "recovery.loss, cwnd.avoidance", rtt_ms=20, loss=0.005, bytes=8 * M,
             qdisc=q(r2_c0="root netem delay 0ms loss 0.5% limit 100000"), flows=[download(8 * M)])
    yield sc("lag-loss-before", "8 MB download, 0.5 % loss on the server's own egress (before the tap), segmentation off, RTT 20 ms", "recovery.loss before the tap", rtt_ms=20, loss=0.005, bytes=8 * M, drops_before_tap=True, setup=SINGLE,
             offload={**SEGMENT, "server:eth0": OFF}, qdisc=q(server_eth0="root netem delay 10ms loss 0.5% limit 100000"), flows=[download(8 * M)])
    yield sc("lag-bottleneck", "10 MB download through 20 Mbit/s in r1, queue 100 kB, RTT 20 ms, half of it on the server's own egress", "bandwidth.self_queue", rtt_ms=20, rate_mbit=20, bytes=10 * M,
             qdisc=q(r1_c0="root tbf rate 20mbit burst 3028 limit 100000"), flows=[download(10 * M)])
    yield sc("lag-bbr", "10 MB download, bbr, 20 Mbit/s in r1, queue 200 kB, RTT 20 ms, half of it on the server's own egress", "bandwidth / pacing", rtt_ms=20, rate_mbit=20, bytes=10 * M, cc="bbr",
             qdisc=q(r1_c0="root tbf rate 20mbit burst 3028 limit 200000"), flows=[download(10 * M, server_opts="cc=bbr")])
    yield sc("lag-zero-window", "1 MB download, the client sleeps 3 s, SO_RCVBUF 64 KiB, RTT 20 ms, half of it on the server's own egress", "zero_window", rtt_ms=20, bytes=1 * M, qdisc=q(),
             flows=[download(1 * M, client="req h s:3000 eof", client_opts="rcvbuf=65536")])


def uploads():
    post = "post:1 w:{n}/16384 h info fin eof"
    def up(n, client_opts="", server_opts="", read=None):
        return {"server": f"h {read or f'r:{n}'} hdr:100 info eof", "client": post.format(n=n), "client_opts": client_opts, "server_opts": server_opts}
    yield sc("upload-rwnd-cap", "upload of 2 MB, server SO_RCVBUF 32 KiB, RTT 20 ms", "rwnd.cap (client sends)", rtt_ms=20, bytes=2 * M, sender="client", qdisc=two_routers(20), flows=[up(2 * M, server_opts="rcvbuf=32768")])
    yield sc("upload-reader-slow", "upload of 2 MB, the server reads 16 KiB each 10 ms, RTT 20 ms", "rwnd.reader (client sends)", rtt_ms=20, bytes=2 * M, sender="client", qdisc=two_routers(20), flows=[up(2 * M, read="r:2000000/16384@10")])
    yield sc("upload-sndbuf", "upload of 2 MB, client SO_SNDBUF 16 KiB, TCP_NODELAY, RTT 20 ms", "sndbuf (client sends)", rtt_ms=20, bytes=2 * M, sender="client", qdisc=two_routers(20), flows=[up(2 * M, client_opts="sndbuf=16384,nodelay=1")])
    yield sc("upload-loss", "upload of 8 MB, 1 % loss towards the server, RTT 20 ms", "recovery.loss, cwnd.avoidance (client sends)", rtt_ms=20, loss=0.01, bytes=8 * M, sender="client",
             qdisc={"r2:c0": "root netem delay 10ms limit 100000", "r1:s0": "root netem delay 10ms loss 1% limit 100000"}, flows=[up(8 * M)])
    yield sc("upload-local-tbf", "upload of 2 MB, tbf 4 Mbit/s on the client's own egress, RTT 20 ms", "local_qdisc (client sends)", rtt_ms=20, rate_mbit=4, bytes=2 * M, sender="client",
             qdisc={**two_routers(20), "client:eth0": "root tbf rate 4mbit burst 10000 limit 1000000"}, flows=[up(2 * M)])


def artefacts():
    """What captures look like when they are taken in other ways."""
    yield sc("any-hosts", "2 MB download through 50 Mbit/s, RTT 20 ms, 0.1 % loss; hosts captured with -i any (SLL2)", "cwnd / bandwidth", rtt_ms=20, rate_mbit=50, bytes=2 * M, qdisc=two_routers(20, 50, 100_000, fwd="loss 0.1%"),
             taps={"server": "server:any", "client": "client:any"}, flows=[download(2 * M)])
    yield sc("any-router", "1 MB download, RTT 20 ms; the middle capture is -i any on r1: every packet twice", "cwnd.slow_start", rtt_ms=20, bytes=1 * M, qdisc=two_routers(20), taps={"middle": "r1:any"}, flows=[download(1 * M)])
    yield sc("middle-before-bottleneck", "10 MB download through 20 Mbit/s, queue 100 kB, RTT 40 ms; the middle tap is before the bottleneck (r1's interface to the server)", "bandwidth.self_queue", rtt_ms=40, rate_mbit=20, bytes=10 * M,
             qdisc=two_routers(40, 20, 100_000), middle="r1:s0", flows=[download(10 * M)])
    yield sc("middle-near-client", "4 MB download, RTT 40 ms, 30 of them between server and tap: middle tap at r2's interface to the client, 0.2 % loss before it", "cwnd, recovery.loss", rtt_ms=40, bytes=4 * M, loss=0.002,
             qdisc={"r1:c0": "root netem delay 15ms loss 0.2% limit 100000", "r1:s0": "root netem delay 15ms limit 100000", "r2:c0": "root netem delay 5ms limit 100000", "r2:s0": "root netem delay 5ms limit 100000"},
             middle="r2:s0", offload={**SEGMENT, "server:eth0": OFF}, flows=[download(4 * M)])
    yield sc("gro-everywhere", "8 MB download through 100 Mbit/s, RTT 20 ms, TSO at the server, GRO at the client, 0.1 % loss", "cwnd / bandwidth", rtt_ms=20, rate_mbit=100, loss=0.001, bytes=8 * M,
             qdisc=two_routers(20, 100, 300_000, fwd="loss 0.1%"), offload={**SEGMENT, "client:eth0": "gro on"}, flows=[download(8 * M)])


def grid():
    """Plain downloads over sizes, round-trip times, rates, queues and controllers."""
    for rtt in (5, 30, 80, 150):
        for n in (100_000, 1 * M, 10 * M):
            yield sc(f"grid-plain-rtt{rtt}-{n // 1000}k", f"{n} B download, RTT {rtt} ms, 1 Gbit/s", "cwnd.slow_start, for large sizes rwnd", rtt_ms=rtt, rate_mbit=1000, bytes=n, qdisc=two_routers(rtt, 1000, 5_000_000, burst=125000), flows=[download(n)])
    for rate, rtt, n in ((2, 50, 1 * M), (10, 10, 4 * M), (10, 100, 4 * M), (50, 30, 20 * M), (100, 80, 30 * M), (200, 20, 40 * M)):
        bdp = int(rate * 1e6 / 8 * rtt / 1e3)
        for times in (0.25, 1, 4):
            queue = max(int(bdp * times), 6000)
            yield sc(f"grid-{rate}mbit-rtt{rtt}-q{times}", f"{n} B download, {rate} Mbit/s, RTT {rtt} ms, queue {times} BDP ({queue} B), cubic", "bandwidth.self_queue / cwnd after loss", rtt_ms=rtt, rate_mbit=rate, queue_bytes=queue,
                     bytes=n, qdisc=two_routers(rtt, rate, queue, burst=max(3028, int(rate * 1e6 / 8 / 4000))), flows=[download(n)])
    for rtt in (10, 100):
        for pct in (0.1, 1):
            yield sc(f"grid-loss{pct}-rtt{rtt}-50mbit", f"8 MB download, {pct} % random loss, 50 Mbit/s, queue 300 kB, RTT {rtt} ms, cubic", "recovery.loss and cwnd.avoidance", rtt_ms=rtt, rate_mbit=50, loss=pct / 100, bytes=8 * M,
                     qdisc=two_routers(rtt, 50, 300_000, fwd=f"loss {pct}%", burst=6000), flows=[download(8 * M)])


FAMILIES = [slow_start, receive_window, send_buffer, random_loss, bottleneck, application, single_losses, others, lagging_tap, uploads, artefacts, grid]


def all():
    out = []
    for f in FAMILIES:
        out += [copy.deepcopy(s) for s in f()]
    names = [s["name"] for s in out]
    assert len(names) == len(set(names)), "scenario names must be unique"
    return out
