"""Checks a stored run: are the captures whole, and do they agree with the kernel's own counters?

The reader of captures here is deliberately small and shares no code with the product."""
import os, struct

import truth


def frames(path):
    """(time_ns, frame as Ethernet, original length) of a pcap; the headers of `-i any` (SLL2) become Ethernet's."""
    data = open(path, "rb").read()
    scale = {0xa1b23c4d: 1, 0xa1b2c3d4: 1000}[struct.unpack("<I", data[:4])[0]]
    sll2 = struct.unpack("<I", data[20:24])[0] == 276
    at = 24
    while at + 16 <= len(data):
        sec, frac, cap, wire = struct.unpack("<IIII", data[at:at + 16])
        f = data[at + 16:at + 16 + cap]
        at += 16 + cap
        if len(f) < cap:
            return
        if sll2:
            f, wire = bytes(12) + f[:2] + f[20:], wire - 6
        yield sec * 10**9 + frac * scale, f, wire


def packets(path):
    """Yields (time_ns, src, sport, dst, dport, seq, ack, flags, payload_len, wire_len, ident, gso_step) of a pcap."""
    for when, f, wire in frames(path):
        kind = struct.unpack(">H", f[12:14])[0]
        if kind == 0x0800:
            head = (f[14] & 15) * 4
            total = struct.unpack(">H", f[16:18])[0] or wire - 14
            src, dst, t = f[26:30], f[30:34], 14 + head
            length = total - head
            ident, step = struct.unpack(">H", f[18:20])[0], 1
        elif kind == 0x86dd:
            src, dst, t = f[22:38], f[38:54], 54
            length = struct.unpack(">H", f[18:20])[0] or wire - 54
            ident, step = None, 0
        else:
            continue
        sport, dport, seq, ack, off, flags = struct.unpack(">HHIIBB", f[t:t + 14])
        if ident is None:   # IPv6 has no identification: the timestamp, if it is where Linux puts it
            options = f[t + 20:t + (off >> 4) * 4]
            ident = struct.unpack(">I", options[4:8])[0] if options[:4] == b"\x01\x01\x08\x0a" else 0
        yield when, src, sport, dst, dport, seq, ack, flags, length - (off >> 4) * 4, wire, ident, step


def tally(path, port, mss):
    """Per direction ("s": from the server's port): segments, bytes, retransmitted segments (by sequence), first and last data time."""
    out = {d: {"packets": 0, "data_bytes": 0, "retransmitted_packets": 0, "retransmitted_segments": 0, "max_payload": 0, "syn": 0, "first_ns": None, "last_data_ns": None} for d in "sc"}
    state = {}
    first = last = None
    for t, src, sport, dst, dport, seq, ack, flags, n, wire, *_ in packets(path):
        if port not in (sport, dport):
            continue
        first = t if first is None else first
        last = t
        d = "s" if sport == port else "c"
        o = out[d]
        o["packets"] += 1
        key = (src, sport, dst, dport)
        if flags & 2:
            o["syn"] += 1
            if key in state and state[key]["isn"] == seq:
                o["retransmitted_packets"] += 1
                o["retransmitted_segments"] += 1
            else:
                state[key] = {"isn": seq, "max": 0}
            continue
        if n <= 0 or key not in state:
            continue
        s = state[key]
        rel = (seq - s["isn"] - 1) & 0xffffffff
        if rel > 0xfff00000:   # a keep-alive or probe just below the first byte
            continue
        rel_end = rel + n
        o["data_bytes"] += n
        o["max_payload"] = max(o["max_payload"], n)
        o["last_data_ns"] = t
        if o["first_ns"] is None:
            o["first_ns"] = t
        if rel < s["max"]:
            o["retransmitted_packets"] += 1
            o["retransmitted_segments"] += -(-(min(rel_end, s["max"]) - rel) // mss)
        s["max"] = max(s["max"], rel_end)
    return out, first, last


def lifetimes(path, port):
    """First and last packet of each connection: the peer's port -> (ns, ns)."""
    life = {}
    for t, src, sport, dst, dport, *rest in packets(path):
        if port in (sport, dport):
            peer = dport if sport == port else sport
            life[peer] = (life[peer][0] if peer in life else t, t)
    return life


def damaged(path):
    """Packets with a wrong IPv4 header checksum or a zero byte in the payload (applications write none): user space lost register contents."""
    bad = 0
    for when, f, wire in frames(path):
        t = 34 if f[12:14] == b"\x08\x00" else 54
        if t == 34:
            total = sum(struct.unpack(">10H", f[14:34]))
            while total >> 16:
                total = (total & 0xffff) + (total >> 16)
            bad += total != 0xffff
        payload = f[t + (f[t + 12] >> 4) * 4:]
        bad += len(f) > 60 and b"\0" in payload and t + (f[t + 12] >> 4) * 4 < len(f)
    return bad


def damaged_files(out):
    """Damaged packets in all captures plus text files that hold a zero byte."""
    bad = 0
    for name in os.listdir(out):
        path = os.path.join(out, name)
        bad += damaged(path) if name.endswith(".pcap") else b"\0" in open(path, "rb").read()
    return bad


def wire_segments(path, from_port, side_is_port, mss):
    """Data segments as they were (or will be) on the wire: (time, peer port, seq, len, ident), super-segments cut into MSS."""
    for t, src, sport, dst, dport, seq, ack, flags, n, wire, ident, step in packets(path):
        if n <= 0 or (sport if side_is_port else dport) != from_port:
            continue
        peer = dport if side_is_port else sport
        k = 0
        while n > 0:
            yield t, peer, seq, min(n, mss), (ident + k * step) & 0xffffffff if step == 0 else (ident + k) & 0xffff
            seq, n, k = (seq + mss) & 0xffffffff, n - mss, k + 1


def losses(out, port, side, mss, skip=()):
    """Writes losses.txt: data segments seen at one tap and not at the next one, matched by (peer port, seq, IP-ID or timestamp)."""
    taps = [t for t in (["server", "middle", "client"] if side == "server" else ["client", "middle", "server"]) if t not in skip and os.path.exists(os.path.join(out, t + ".pcap"))]
    counts = {}
    with open(os.path.join(out, "losses.txt"), "w") as f:
        f.write("# time_ns_at_first_tap from_tap to_tap peer_port seq len ident\n")
        for a, b in zip(taps, taps[1:]):
            seen = {}
            for t, peer, seq, n, ident in wire_segments(os.path.join(out, b + ".pcap"), port, side == "server", mss):
                seen[peer, seq, ident] = seen.get((peer, seq, ident), 0) + 1
            lost = 0
            for t, peer, seq, n, ident in wire_segments(os.path.join(out, a + ".pcap"), port, side == "server", mss):
                if seen.get((peer, seq, ident), 0):
                    seen[peer, seq, ident] -= 1
                else:
                    lost += 1
                    f.write(f"{t} {a} {b} {peer} {seq} {n} {ident}\n")
            counts[f"{a}->{b}"] = lost
    return counts


def shares(s):
    """The true states of the first three connections in words, largest first."""
    out = []
    for n, states in list(s["checks"].get("truth_ms", {}).items())[:3]:
        total = sum(states.values()) or 1
        out.append((f"Truth of connection {n}: " if int(n) > 1 else "Truth: ") + ", ".join(f"{k} {100 * v / total:.1f} %" for k, v in states.items() if v > total / 100) + f" of {total:.1f} ms.")
    return " ".join(out)


def folder(out, s, info):
    port = s["flows"][0].get("port", 8000)
    side = s.get("sender", "server")
    d = "s" if side == "server" else "c"
    result = {}
    mss = max([i["snd_mss"] for i in info if i["name"] == side] or [1448])
    for tap in ("server", "client", "middle"):
        p = os.path.join(out, tap + ".pcap")
        if os.path.exists(p):
            t, first, last = tally(p, port, mss)
            result[tap] = {"data": t[d], "other": {k: t["c" if d == "s" else "s"][k] for k in ("packets", "data_bytes", "retransmitted_segments")},
                           "first_ns": first, "last_ns": last}
    result["damaged"] = damaged_files(out)
    result["lost_segments"] = losses(out, port, side, mss, [t for t, w in s.get("taps", {}).items() if t == "middle" and w.endswith(":any")])
    last_info = {}
    for i in info:
        if i["name"] == side:
            last_info[i["conn"]] = i
    kernel = sum(i["total_retrans"] for i in last_info.values())
    result["kernel_total_retrans"] = kernel
    result["kernel_bytes_acked"] = sum(i["bytes_acked"] for i in last_info.values())
    retr = [l for l in open(os.path.join(out, "retrans.txt")) if f"{'sport' if d == 's' else 'dport'}={port} " in l]
    result["tracepoint_retransmit_events"] = len(retr)
    peer = {}
    for i in info:
        if i["name"] == ("client" if side == "server" else "server"):
            peer[i["conn"]] = i
    result["peer_bytes_received"] = sum(i["bytes_received"] for i in peer.values())
    r = result.get(side)
    if r and r["data"]["last_data_ns"]:
        result["capture_retransmitted_segments"] = r["data"]["retransmitted_segments"]
        life = (r["last_ns"] - r["first_ns"]) / 1e6
        result["lifetime_ms"] = life
        to_data = (r["data"]["last_data_ns"] - r["first_ns"]) / 1e6
        result["syn_to_last_data_ms"] = to_data
        result["summary"] = f"{result['peer_bytes_received']} B in {to_data:.3f} ms (SYN to last data at the sender), retransmitted {r['data']['retransmitted_segments']} in the capture, {kernel} by the kernel."
    if os.path.getsize(os.path.join(out, "truth.txt")) and os.path.exists(os.path.join(out, side + ".pcap")):
        result["truth_ms"] = truth.write(out, port, side, lifetimes(os.path.join(out, side + ".pcap"), port))
    return result


def problems(s):
    """Reasons not to trust the run."""
    c, p = s["checks"], []
    for tap, counts in s["tcpdump"].items():
        d = {k: int(n) for n, k in counts}
        if d.get("dropped"):
            p.append(f"{tap} tap dropped {d['dropped']} packets")
    if s.get("trace_overrun"):
        p.append(f"trace ring overran by {s['trace_overrun']} events")
    if c["damaged"]:
        p.append(f"{c['damaged']} damaged packets or files")
    if s.get("setup_failed"):
        p.append("a qdisc or setup command failed")
    if c.get("summary") is None:
        p.append("no capture at the sender")
        return p
    if not s.get("drops_before_tap") and c["capture_retransmitted_segments"] != c["kernel_total_retrans"]:
        p.append(f"capture shows {c['capture_retransmitted_segments']} retransmitted segments, the kernel counted {c['kernel_total_retrans']}")
    want = s.get("bytes")
    if want and c["peer_bytes_received"] < want:
        p.append(f"peer received {c['peer_bytes_received']} of {want} B")
    if not s.get("reset") and c["peer_bytes_received"] and abs(c["kernel_bytes_acked"] - c["peer_bytes_received"]) > 2 * 8:
        p.append(f"kernel saw {c['kernel_bytes_acked']} B acknowledged, the peer received {c['peer_bytes_received']}")
    return p
