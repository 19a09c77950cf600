"""What is inserted into an unpacked kernel source, and where.

Two sorts, applied one after the other. BASE lets the kernel run as a simulation at all: a tick rate,
a clock that it costs nothing to read, no processor state wider than SSE, no randomness from the host.
OBSERVE adds tracepoints that only look: why tcp_write_xmit stopped, what arrived, which timer fired, when an application blocked, what
waits in a queue. Both kernels are kept, so that anybody can hold their packets against each other.

No kernel text is kept here but the anchors: single lines of the source, compared without their
indentation, each of which must be found exactly once in its function (or its file). Where versions
differ, an edit lists alternatives, and the first that this version has must fit. If not, nothing is built and the
sentence names the anchor. Ours: the anchors fit Debian's 5.10, 6.1, 6.12 and 7.2.
"""
from dataclasses import dataclass, field
from pathlib import Path


class Misfit(Exception):
    """An anchor that does not fit this version."""


@dataclass
class At:
    """A place: a file, the first line of a function in it (or none: the whole file), a line."""
    path: str
    function: str
    anchor: str
    after: bool = False


@dataclass
class Edit:
    """Lines of ours at the one of several places that this version has."""
    places: list
    lines: list = field(default_factory=list)
    replaces: bool = False
    optional: bool = False


def instead(path, function, anchor, *lines):
    return Edit([At(path, function, anchor)], list(lines), replaces=True)


def before(path, function, anchor, *lines):
    return Edit([At(path, function, anchor)], list(lines))


def after(path, function, anchor, *lines):
    return Edit([At(path, function, anchor, after=True)], list(lines))


# --- what makes it a simulation ---------------------------------------------------------------

def base(hz):
    """Tick rate as distributions have it; no AVX state, whose buffer is too small before 6.13; fixed randomness."""
    return [
        Edit([At("arch/um/Kconfig", "config HZ", "default 100")], [f"default {hz}"], replaces=True),
        # With AVX-512 or AMX the host's extended state is larger than the buffer for it, and user space
        # dies; ours is built without wide registers. From 6.13 on the buffer has the host's size.
        Edit([At("arch/x86/um/os-Linux/registers.c", "", "have_xstate_support = 1;")],
             ["have_xstate_support = 0;"], replaces=True, optional=True),
        # Then the same run is the same on every boot; the guest's init stirs in the run's seed. Absent in 5.10.
        Edit([At("arch/um/os-Linux/util.c", "ssize_t os_getrandom(", "return getrandom(buf, len, flags);")],
             ["memset(buf, 0x5a, len);", "return len;"], replaces=True, optional=True),
    ] + clock()


CLOCK = "arch/um/kernel/time.c"
READ = "static u64 timer_read("
SETUP = "static void __init um_timer_setup("

# How often the clock is read within a step (256 ns) before each read costs a step, and how many calls fail within a
# microsecond before each costs one; as each of those looks at the clock twice, that begins with half as many.
# Ours: estimated, not measured, that an experiment reads it some thousand times at an instant (a write of 4 MB
# that leaves at once), and that a program which does nothing else has done so within a second of the host's.
FREE_READS = 100_000


def clock():
    """As packets and programs take no time, reading the clock takes none; it tells every nanosecond, and timers
    fire at the one that they are set for.

    As it is, each read outside of interrupts moves the clock by a step, so that a program which polls it gets on:
    a program's calls then take time, the more the more they send and the more is observed. Here only those pay
    that read it very often in a row. Nor does the clock tell less than a step, or a timer fire within 500 ns.
    """
    return [
        # Declared where no statement is before: the block begins with a comment.
        Edit([At(CLOCK, READ, "if (!irqs_disabled() && !in_interrupt() && !in_softirq() &&"),
              At(CLOCK, READ, "if (!irqs_disabled() && !in_interrupt() && !in_softirq())")],   # 5.10
             ["static unsigned long long tcpwhy_last;", "static unsigned int tcpwhy_reads;", "",
              "if (time_travel_time - tcpwhy_last > TIMER_MULTIPLIER)", "\ttcpwhy_reads = 0;",
              "tcpwhy_last = time_travel_time;", f"if (++tcpwhy_reads > {FREE_READS})"]),
        instead(CLOCK, READ, "return time_travel_time / TIMER_MULTIPLIER;", "return time_travel_time;"),
        instead(CLOCK, READ, "return os_nsecs() / TIMER_MULTIPLIER;", "return os_nsecs();"),
        instead(CLOCK, SETUP, "err = clocksource_register_hz(&timer_clocksource, NSEC_PER_SEC/TIMER_MULTIPLIER);",
                "err = clocksource_register_hz(&timer_clocksource, NSEC_PER_SEC);"),
        instead(CLOCK, "static int itimer_next_event(", "delta += 1;", "delta += !delta;"),
        instead(CLOCK, "", ".min_delta_ns\t\t= TIMER_MIN_DELTA,", ".min_delta_ns\t\t= 1,"),
        # A call that fails takes a microsecond, lest a program calls again and again. Absent in 5.10.
        Edit([At("arch/um/kernel/skas/syscall.c", "void handle_syscall(", "um_udelay(1);")],
             ["static u64 tcpwhy_last;", "static unsigned int tcpwhy_failed;", "",
              "if (ktime_get_ns() - tcpwhy_last > 1000)", "\ttcpwhy_failed = 0;",
              "tcpwhy_last = ktime_get_ns();", f"if (++tcpwhy_failed > {FREE_READS})", "\tum_udelay(1);"],
             replaces=True, optional=True),
    ]


# --- what observes ----------------------------------------------------------------------------

OUTPUT = "net/ipv4/tcp_output.c"
XMIT = "static bool tcp_write_xmit("
TIMER = "net/ipv4/tcp_timer.c"
HANDLER = "void tcp_write_timer_handler("
SENDMSG = "int tcp_sendmsg_locked("


def stops():
    """Before each test of tcp_write_xmit, the reason it would stop for; at its end, the reason it did."""
    def if_it_stops_here(anchor, why):
        return before(OUTPUT, XMIT, anchor, f"tcpwhy_stop = {why};")
    return [
        after(OUTPUT, XMIT, "struct sk_buff *skb;", 'const char *tcpwhy_stop = "nothing";'),
        if_it_stops_here("if (tcp_pacing_check(sk))", '"pacing"'),
        Edit([At(OUTPUT, XMIT, "cwnd_quota = tcp_cwnd_test(tp, skb);"), At(OUTPUT, XMIT, "cwnd_quota = tcp_cwnd_test(tp);")],
             ['tcpwhy_stop = "cwnd";']),
        if_it_stops_here("if (unlikely(!tcp_snd_wnd_test(tp, skb, mss_now))) {", '"rwnd"'),
        if_it_stops_here("if (tso_segs == 1) {", 'tso_segs == 1 ? "nagle" : "defer"'),
        if_it_stops_here("limit = mss_now;", '"fragment"'),
        if_it_stops_here("if (tcp_small_queue_check(sk, skb, 0))", '"tsq"'),
        if_it_stops_here("if (TCP_SKB_CB(skb)->end_seq == TCP_SKB_CB(skb)->seq)", '"empty"'),
        if_it_stops_here("if (unlikely(tcp_transmit_skb(sk, skb, 1, gfp)))", '"refused"'),
        after(OUTPUT, XMIT, "sent_pkts += tcp_skb_pcount(skb);",
              'tcpwhy_stop = push_one && tcp_send_head(sk) ? "push_one" : "nothing";'),
        # TSO deferral waits for something that its two flags name.
        before(OUTPUT, XMIT, "if (is_rwnd_limited)",
               'if (tcpwhy_stop[0] == \'d\' && is_cwnd_limited)', '\ttcpwhy_stop = "defer_cwnd";',
               'else if (tcpwhy_stop[0] == \'d\' && is_rwnd_limited)', '\ttcpwhy_stop = "defer_rwnd";'),
        before(OUTPUT, XMIT, "if (likely(sent_pkts)) {", 'trace_tcp_truth(sk, "xmit", tcpwhy_stop, sent_pkts);'),
    ]


def observe():
    """All tracepoints and the places that call them."""
    return stops() + [
        before("include/trace/events/tcp.h", "", "#endif /* _TRACE_TCP_H */", *TCP_EVENTS.splitlines()),
        before(OUTPUT, "static int __tcp_transmit_skb(", "/* Cleanup our debris for IP stacks */",
               "trace_tcp_segment(sk, tcb->seq, tcb->end_seq, rcv_nxt, tcb->tcp_flags, tcp_skb_pcount(skb));"),
        before(OUTPUT, "void tcp_send_loss_probe(", "/* At most one outstanding TLP */",
               'trace_tcp_truth(sk, "timer", "tlp", 0);'),
        after("net/ipv4/tcp_input.c", "static inline void tcp_data_snd_check(", "tcp_check_space(sk);",
              'trace_tcp_truth(sk, "ack", tcp_send_head(sk) ? "waiting" : "nothing", 0);'),
        after(TIMER, "", "#include <net/tcp.h>", "#include <trace/events/tcp.h>"),
        before(TIMER, HANDLER, "tcp_rack_reo_timeout(sk);", 'trace_tcp_truth(sk, "timer", "reo", 0);'),
        before(TIMER, HANDLER, "tcp_retransmit_timer(sk);", 'trace_tcp_truth(sk, "timer", "rto", 0);'),
        before(TIMER, HANDLER, "tcp_probe_timer(sk);", 'trace_tcp_truth(sk, "timer", "probe0", 0);'),
        after("net/ipv4/tcp.c", "", "#include <net/busy_poll.h>", "#include <trace/events/tcp.h>"),
        before("net/ipv4/tcp.c", SENDMSG, "/* Ok commence sending. */", 'trace_tcp_truth(sk, "write", "begin", size);'),
        before("net/ipv4/tcp.c", SENDMSG, "err = sk_stream_wait_memory(sk, &timeo);",
               'trace_tcp_truth(sk, "write", "blocked", copied);'),
        after("net/ipv4/tcp.c", SENDMSG, "err = sk_stream_wait_memory(sk, &timeo);",
              'trace_tcp_truth(sk, "write", "woken", copied);'),
        before("net/ipv4/tcp.c", SENDMSG, "return copied + copied_syn;",
               'trace_tcp_truth(sk, "write", "end", copied);'),
        before("include/trace/events/qdisc.h", "", "#endif /* _TRACE_QDISC_H */", *QDISC_EVENT.splitlines()),
        after("net/core/dev.c", "", "#include <trace/events/net.h>", "#include <trace/events/qdisc.h>"),
        Edit([At("net/core/dev.c", "static int dev_qdisc_enqueue(", "if (rc == NET_XMIT_SUCCESS)"),
              At("net/core/dev.c", "static inline int __dev_xmit_skb(", "if (qdisc_run_begin(q)) {")],   # 5.10
             ["trace_qdisc_backlog(q, qdisc_dev(q)->name, rc == NET_XMIT_SUCCESS);"]),
        after("net/sched/sch_generic.c", "static struct sk_buff *dequeue_skb(",
              "trace_qdisc_dequeue(q, txq, *packets, skb);",
              "if (skb)", "\ttrace_qdisc_backlog(q, qdisc_dev(q)->name, -*packets);"),
    ]


TCP_EVENTS = """\
TRACE_EVENT(tcp_truth,
	TP_PROTO(struct sock *sk, const char *where, const char *why, u32 amount),
	TP_ARGS(sk, where, why, amount),
	TP_STRUCT__entry(
		__field(u64, now)
		__field(u64, cookie)
		__field(u64, pacing)
		__array(char, where, 8)
		__array(char, why, 16)
		__field(u32, amount)
		__field(u32, una)
		__field(u32, nxt)
		__field(u32, end)
		__field(u32, wnd)
		__field(u32, cwnd)
		__field(u32, ssthresh)
		__field(u32, flight)
		__field(u32, out)
		__field(u32, lost)
		__field(u32, sacked)
		__field(u32, retrans)
		__field(u32, mss)
		__field(u32, queued)
		__field(u32, sndbuf)
		__field(u32, below)
		__field(u32, srtt)
		__field(u32, rto)
		__field(u32, rcvnxt)
		__field(u32, rcvwnd)
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, ca)
		__field(u8, nospace)
	),
	TP_fast_assign(
		const struct tcp_sock *tp = tcp_sk(sk);
		const struct inet_connection_sock *icsk = inet_csk(sk);

		__entry->now = ktime_get_real_ns();
		__entry->cookie = sock_gen_cookie(sk);
		__entry->pacing = sk->sk_pacing_rate;
		strscpy(__entry->where, where, 8);
		strscpy(__entry->why, why, 16);
		__entry->amount = amount;
		__entry->una = tp->snd_una;
		__entry->nxt = tp->snd_nxt;
		__entry->end = tp->write_seq;
		__entry->wnd = tp->snd_wnd;
		__entry->cwnd = tp->snd_cwnd;
		__entry->ssthresh = tp->snd_ssthresh;
		__entry->flight = tcp_packets_in_flight(tp);
		__entry->out = tp->packets_out;
		__entry->lost = tp->lost_out;
		__entry->sacked = tp->sacked_out;
		__entry->retrans = tp->retrans_out;
		__entry->mss = tp->mss_cache;
		__entry->queued = sk->sk_wmem_queued;
		__entry->sndbuf = sk->sk_sndbuf;
		__entry->below = sk_wmem_alloc_get(sk);
		__entry->srtt = tp->srtt_us >> 3;
		__entry->rto = jiffies_to_usecs(icsk->icsk_rto);
		__entry->rcvnxt = tp->rcv_nxt;
		__entry->rcvwnd = tp->rcv_wnd;
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->ca = icsk->icsk_ca_state;
		__entry->nospace = sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	),
	TP_printk("now=%llu sport=%u dport=%u where=%s why=%s amount=%u una=%u nxt=%u end=%u wnd=%u cwnd=%u ssthresh=%u flight=%u out=%u lost=%u sacked=%u retrans=%u mss=%u queued=%u sndbuf=%u below=%u srtt=%u rto=%u rcvnxt=%u rcvwnd=%u pacing=%llu ca=%u nospace=%u cookie=%llu",
		  __entry->now, __entry->sport, __entry->dport, __entry->where, __entry->why,
		  __entry->amount, __entry->una, __entry->nxt, __entry->end, __entry->wnd,
		  __entry->cwnd, __entry->ssthresh, __entry->flight, __entry->out, __entry->lost,
		  __entry->sacked, __entry->retrans, __entry->mss, __entry->queued, __entry->sndbuf,
		  __entry->below, __entry->srtt, __entry->rto, __entry->rcvnxt, __entry->rcvwnd,
		  __entry->pacing, __entry->ca, __entry->nospace, __entry->cookie)
);

TRACE_EVENT(tcp_segment,
	TP_PROTO(const struct sock *sk, u32 seq, u32 end_seq, u32 ack, u16 flags, u32 segments),
	TP_ARGS(sk, seq, end_seq, ack, flags, segments),
	TP_STRUCT__entry(
		__field(u64, now)
		__field(u32, seq)
		__field(u32, end_seq)
		__field(u32, ack)
		__field(u32, segments)
		__field(u16, sport)
		__field(u16, dport)
		__field(u16, flags)
	),
	TP_fast_assign(
		__entry->now = ktime_get_real_ns();
		__entry->seq = seq;
		__entry->end_seq = end_seq;
		__entry->ack = ack;
		__entry->segments = segments;
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->flags = flags;
	),
	TP_printk("now=%llu sport=%u dport=%u seq=%u end_seq=%u ack=%u flags=%u segments=%u",
		  __entry->now, __entry->sport, __entry->dport, __entry->seq, __entry->end_seq,
		  __entry->ack, __entry->flags, __entry->segments)
);
"""

QDISC_EVENT = """\
TRACE_EVENT(qdisc_backlog,
	TP_PROTO(struct Qdisc *qdisc, const char *dev, int change),
	TP_ARGS(qdisc, dev, change),
	TP_STRUCT__entry(
		__field(u64, now)
		__array(char, dev, 16)
		__field(int, change)
		__field(u32, packets)
		__field(u32, bytes)
		__field(u32, dropped)
	),
	TP_fast_assign(
		__entry->now = ktime_get_real_ns();
		strscpy(__entry->dev, dev, 16);
		__entry->change = change;
		__entry->packets = qdisc->q.qlen;
		__entry->bytes = qdisc->qstats.backlog;
		__entry->dropped = qdisc->qstats.drops;
	),
	TP_printk("now=%llu dev=%s change=%d packets=%u bytes=%u dropped=%u",
		  __entry->now, __entry->dev, __entry->change, __entry->packets,
		  __entry->bytes, __entry->dropped)
);
"""


# --- carrying them out ------------------------------------------------------------------------

def span(lines, function):
    """Lines of a function's body, or of a Kconfig entry, or of the whole file."""
    if not function:
        return range(len(lines))
    is_end = (lambda line: line.startswith("config")) if function.startswith("config") else (lambda line: line.startswith("}"))
    for start, line in enumerate(lines):
        if not line.startswith(function):
            continue
        # A declaration ends in a semicolon before any body begins.
        head = next((line for line in lines[start:] if line.rstrip().endswith((";", "{")) or line.startswith(("{", "\t"))
                     and not line.strip().endswith(",")), "")
        if head.rstrip().endswith(";") and not function.startswith("config"):
            continue
        end = next((n for n in range(start + 1, len(lines)) if is_end(lines[n])), len(lines) - 1)
        return range(start, end + 1)
    return range(0)


def hits(source, place):
    """Line numbers at which a place's anchor stands."""
    path = source / place.path
    if not path.exists():
        return []
    lines = path.read_text().split("\n")
    return [n for n in span(lines, place.function) if lines[n].strip() == place.anchor]


def locate(source, edit):
    """The place of an edit that this version has, and its line; None if an optional one has none."""
    for place in edit.places:
        at = hits(source, place)
        if len(at) == 1:
            return place, at[0]
        if len(at) > 1 or place is edit.places[-1]:
            if edit.optional and not at:
                return None
            where = f" in `{place.function}`" if place.function else ""
            raise Misfit(f"{place.path}{where}: the line `{place.anchor}` is there {len(at)} times instead of once; "
                         "this version needs an alternative in scripts/kernel/edits.py")


def apply(source, edits):
    """Finds the place of every edit first, then writes them all: a misfit leaves the source as it was."""
    found = {}
    for order, edit in enumerate(edits):
        if (at := locate(source, edit)) is not None:
            place, n = at
            found.setdefault(place.path, []).append((n, place.after, order, edit))
    for path, changes in found.items():
        lines = (source / path).read_text().split("\n")
        for n, is_after, _, edit in sorted(changes, key=lambda c: c[:3], reverse=True):
            indent = lines[n][:len(lines[n]) - len(lines[n].lstrip())]
            ours = [indent + line if line else line for line in edit.lines]
            if edit.replaces:
                lines[n:n + 1] = ours
            else:
                lines[n + is_after:n + is_after] = ours
        (source / path).write_text("\n".join(lines))


# --- checking that ----------------------------------------------------------------------------

def self_check():
    """`python3 scripts/kernel/edits.py`: are lines put where they belong, and misfits refused?"""
    import tempfile
    text = "int f(int a,\n      int b);\nint g(int a)\n{\n\tx;\n}\nint f(int a,\n      int b)\n{\n\tif (a)\n\t\tx;\n\ty;\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        def tried(*all_edits):
            (source / "a.c").write_text(text)
            try:
                apply(source, all_edits)
            except Misfit as misfit:
                assert (source / "a.c").read_text() == text, "a misfit changes nothing"
                return str(misfit)
            return (source / "a.c").read_text()
        assert tried(before("a.c", "int f(", "x;", "t;")) == text.replace("\t\tx;", "\t\tt;\n\t\tx;")
        assert tried(after("a.c", "int f(", "y;", "t;"), before("a.c", "int f(", "y;", "s;")) == text.replace("\ty;", "\ts;\n\ty;\n\tt;")
        assert tried(Edit([At("a.c", "", "y;")], ["z;"], replaces=True)) == text.replace("\ty;", "\tz;")
        assert "is there 2 times" in tried(before("a.c", "", "x;", "t;"))
        assert "is there 0 times" in tried(before("a.c", "int g(", "y;", "t;"), before("a.c", "int f(", "y;", "t;"))
        assert tried(Edit([At("a.c", "", "gone;")], ["t;"], optional=True)) == text
        assert tried(Edit([At("a.c", "int h(", "y;"), At("a.c", "int f(", "y;")], ["t;"])) == text.replace("\ty;", "\tt;\n\ty;")


if __name__ == "__main__":
    self_check()
