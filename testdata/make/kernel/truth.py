"""From the patched kernel's records to a gap-free list of what the sender waited for.

Question: at each instant, why did TCP on the sending side not send? Method: the last answer of tcp_write_xmit (truth.txt) holds until the next
record; when it had nothing to send, the application's log and the blocked-write records say whose turn it was. This is the sender's stack clock.
Left out: the network's view (a bottleneck's queue shows as cwnd.*, with the queue's share of srtt beside it); what the peer did.

States: handshake, cwnd.slow_start, cwnd.avoidance, recovery (ca_state 3, and 2 while cwnd stops sending), loss (ca_state 4), rwnd, zero_window, nagle, pacing,
tsq (bytes still below TCP: local qdisc, or fq's pacing), defer (TSO deferral without a named window), sndbuf (writer blocked, all sent),
app (nothing but a Nagle tail unsent, data unacknowledged, the application works or sleeps, more to come), app.peer (the same, but it waits in read: a message of the peer must come first),
last_flight, idle.app_think (all acknowledged, the sender's application is not in read), idle.peer (it waits in read),
tlp_wait, rto_wait (from the last arriving segment to the timer that sent; known afterwards, they replace what stood there), closing.
A Nagle tail is `nagle` while the application waits in read or has written all, else `app`."""
import bisect, collections, os, re

FIELD = re.compile(r"(\w+)=(\S+)")
TEXT = {"where", "why", "cookie"}


def records(path, port, side):
    """Truth records of the sending side, grouped by the peer's port."""
    out = collections.OrderedDict()
    with open(path) as f:
        for line in f:
            when, rest = line.split(" ", 1)
            r = {k: v if k in TEXT else int(v) for k, v in FIELD.findall(rest)}
            own, other = ("sport", "dport") if side == "server" else ("dport", "sport")
            if r[own] != port:
                continue
            r["t"] = int(when)
            out.setdefault(r[other], []).append(r)
    return out


def reads(app_log, who):
    """(start, end) of the reads that the sender's application waited in, and the end of the stream, a connection number each."""
    out, ends = collections.defaultdict(list), {}
    for line in open(app_log):
        if line.startswith("#"):
            continue
        start, end, name, event = line.split()[:4]
        n, conn = name.split("#")
        if n == who and event == "read":
            out[int(conn)].append((int(start), int(end)))
        elif n == who and event == "eof":
            ends[int(conn)] = int(start)
    return out, ends


def intervals(recs, read_spans, sends, eof, first_ns, last_ns):
    """[(start, end, state)] from the first to the last packet at the sender's tap; sends: times of segments with data."""
    out, why, blocked, probed = [], "nothing", False, False
    begin, at = first_ns, "handshake"
    last_write_end = recs[-1]["end"]

    def close(t):
        nonlocal begin
        t = min(max(t, begin), last_ns)
        if t > begin:
            if out and out[-1][2] == at:
                out[-1] = (out[-1][0], t, at)
            else:
                out.append((begin, t, at))
            begin = t

    for r in recs:
        state = None
        if r["where"] == "xmit":
            why = r["why"]
        elif r["where"] == "write":
            blocked = r["why"] == "blocked"
        if r["where"] in ("ack", "timer"):
            probed = r["why"] == "tlp"
        unsent = (r["end"] - r["nxt"]) & 0xffffffff
        unacked = (r["nxt"] - r["una"]) & 0xffffffff
        # the FIN takes one sequence number: the data may end one before the last
        done = ((last_write_end - r["end"]) & 0xffffffff) <= 1
        if unsent:
            if r["ca"] == 4:
                state = "loss"
            elif why in ("cwnd", "defer_cwnd"):
                state = "recovery" if r["ca"] in (2, 3) else "cwnd.slow_start" if r["cwnd"] < r["ssthresh"] else "cwnd.avoidance"
            elif why in ("rwnd", "defer_rwnd"):
                state = "zero_window" if r["wnd"] == 0 or (r["where"] == "timer" and r["why"] == "probe0") or unacked == 0 else "rwnd"
            elif why in ("nothing", "push_one", "empty"):
                state = "tlp_wait" if probed else "busy"   # busy: within one call
            elif why == "nagle" and not done:
                state = "held"
            else:
                state = why
        elif unacked:
            if r["ca"] in (3, 4):
                state = "loss" if r["ca"] == 4 else "recovery"
            else:
                state = "sndbuf" if blocked else "last_flight" if done else "app"
        else:
            state = "closing" if done else "idle"
        if state != at:
            close(r["t"])
            at = state
    if eof and eof > recs[-1]["t"] and at == "last_flight":
        close(eof)   # the peer's FIN acknowledged the rest; a socket on its way to TIME-WAIT records no more
        at = "closing"
    close(last_ns)
    return split_by_reads(after_timers(out, recs, sends), read_spans)


def after_timers(spans, recs, sends):
    """Gives the time from the last progress to a timer's send to that timer."""
    waits, progress = [], None
    for r in recs:
        if r["where"] == "ack":
            progress = r["t"]
        elif r["where"] == "timer" and r["why"] in ("tlp", "rto") and r["nxt"] != r["una"]:
            k = bisect.bisect_left(sends, r["t"])
            if progress is not None and k < len(sends) and sends[k] - r["t"] < 20_000:
                waits.append((progress, r["t"], r["why"] + "_wait"))
                progress = r["t"]
        elif r["where"] == "xmit" and r["amount"] and progress is not None and r["flight"] == r["amount"]:
            progress = r["t"]   # sent onto an empty path: the timer runs from here
    out = []
    for start, end, state in spans:
        t = start
        for a, b, wait in waits:
            a, b = max(a, t), min(b, end)
            if b <= a:
                continue
            if a > t:
                out.append((t, a, state))
            out.append((a, b, wait))
            t = b
        if t < end:
            out.append((t, end, state))
    return out


def split_by_reads(spans, read_spans):
    """Cuts idle, app and Nagle-held time by whether the sender's application waited in read."""
    outside = {"idle": "idle.app_think", "app": "app", "held": "app"}
    inside = {"idle": "idle.peer", "app": "app.peer", "held": "nagle"}
    out, k = [], 0
    for start, end, state in spans:
        if state not in outside:
            out.append((start, end, state))
            continue
        t = start
        while k < len(read_spans) and read_spans[k][1] <= t:
            k += 1
        for a, b in read_spans[k:]:
            if a >= end:
                break
            a, b = max(a, t), min(b, end)
            if b <= a:
                continue
            if a > t:
                out.append((t, a, outside[state]))
            out.append((a, b, inside[state]))
            t = b
        if t < end:
            out.append((t, end, outside[state]))
    return out


def data_sends(path, port, side):
    """Times of segments with data that the sending side's TCP handed down, sorted, by the peer's port."""
    out = collections.defaultdict(list)
    for line in open(path):
        r = dict(FIELD.findall(line))
        own, other = ("sport", "dport") if side == "server" else ("dport", "sport")
        if int(r[own]) == port and r["seq"] != r["end_seq"]:
            out[int(r[other])].append(int(line.split(" ", 1)[0]))
    return out


def write(folder, port, side, lifetimes):
    """Writes intervals.txt; lifetimes: peer port -> (first, last packet). Returns the shares of the first connection, in ms."""
    all_reads, ends = reads(os.path.join(folder, "app.log"), side)
    sends = data_sends(os.path.join(folder, "segments.txt"), port, side)
    shares = {}
    with open(os.path.join(folder, "intervals.txt"), "w") as f:
        f.write("# connection peer_port start_ns end_ns state (sender's stack clock; see truth.py)\n")
        for n, (peer, recs) in enumerate(records(os.path.join(folder, "truth.txt"), port, side).items(), 1):
            if peer not in lifetimes:
                continue
            first, last = lifetimes[peer]
            spans = intervals(recs, all_reads.get(n, []), sends[peer], ends.get(n), first, last)
            total = collections.Counter()
            for a, b, s in spans:
                f.write(f"{n} {peer} {a} {b} {s}\n")
                total[s] += b - a
            assert sum(total.values()) == last - first, "the intervals must cover the lifetime"
            shares[n] = {k: round(v / 1e6, 3) for k, v in total.most_common()}
    return shares
