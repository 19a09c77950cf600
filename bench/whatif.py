#!/usr/bin/env python3
"""Holds the answers of `tcpwhy whatif` against kernels in simulated time: `make whatif`.

    bench/whatif.py [--program tcpwhy] [--backend uml:6.1] [--seed 1] [--each 4] [--kind KIND,...] [--keep DIR]

Draws experiments of each kind from the seed, runs them on the kernel as they are and once more with each
change, asks what-if about the captures of the former, and lays its answers beside the latter. Nothing but
the capture goes into the answer. Printed is a line for each question, then a table of the kinds:

    repeated     captures that the model repeats, of all; the others are refused
    replay       how far the unchanged replay's time is from the capture's, half of them and most
    answers      questions about captures that are repeated
    in range     of these: the kernel's time lies within the range, or within 2 % of one of its ends
    width        of the range, in per cent of the capture's time: half of them
    off          how far the answer is from the kernel's time: half of them, 9 in 10, most

Then what `explain` advises for the same captures (settings only) is carried out on the kernel, too, and a line says how many
of its ranges hold the kernel's time, and how many of those that come of the model are what `whatif` says of that change.
"""
import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# How near to an end of the range counts as in it: the difference of two runs of one kernel.
SLACK = 0.02


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="target/release/tcpwhy")
    parser.add_argument("--backend", default="uml:6.1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=4, help="experiments of each kind")
    parser.add_argument("--kind", help="only these, with commas between")
    parser.add_argument("--keep", help="keep scenarios and captures in this folder")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(asked.keep or folder)
        rows, advised = [], []
        for kind in asked.kind.split(",") if asked.kind else KINDS:
            for number in range(asked.each):
                dice = random.Random(f"{asked.seed} {kind} {number}")
                own = experiment(asked, folder / f"{kind}-{asked.seed}-{number}", kind, dice)
                rows += own
                advised += advice(asked, folder / f"{kind}-{asked.seed}-{number}", own[0])
    summary(rows)
    summary_of_advice(advised)


def experiment(asked, folder, kind, dice):
    """One experiment: its questions with answers and truth."""
    text, changes = KINDS[kind](dice)
    # A change has to change something.
    changes = [change if f'rtt = "{change.split("=")[1]}"' not in text else "path.rtt=200ms" for change in changes]
    tap = dice.choice(["server", "server", "client"])
    folder.mkdir(parents=True, exist_ok=True)
    scenario = folder / "scenario.toml"
    variants = '[variants."as-it-is"]\n' + "".join(
        f'[variants."{name}"]\n' + "".join(f"{toml(part)}\n" for part in change.split(";"))
        for name, change in enumerate(changes))
    scenario.write_text(f"repeats = 1\nseed = {dice.randrange(1 << 30)}\n{text}\n{variants}")
    runs = folder / "runs"
    if not runs.exists():
        run(asked.program, "lab", "run", str(scenario), "--backend", asked.backend, "--keep", str(runs))
    capture = f"{tap}.pcapng"
    seen = runs / "scenario-as-it-is-0" / capture
    rows = []
    for name, change in enumerate(changes):
        sets = [word for part in change.split(";") for word in ("--set", part)]
        truth = lasted(asked.program, runs / f"scenario-{name}-0" / capture)
        told = subprocess.run([asked.program, "whatif", str(seen), "--json", *sets], capture_output=True, text=True)
        row = {"kind": kind, "folder": folder.name, "tap": tap, "change": change, "truth": truth}
        if told.returncode:
            row["refused"] = told.stderr.strip().split("\n")[-1].split(": ", 1)[-1]
        else:
            take(row, json.loads(told.stdout))
        rows.append(row)
        print(line(row), flush=True)
    return rows


def advice(asked, folder, row):
    """What `explain` advises for the capture of `row`'s experiment, beside the kernel with that setting and `whatif`."""
    runs, capture = folder / "runs", f"{row['tap']}.pcapng"
    seen = runs / "scenario-as-it-is-0" / capture
    report = json.loads(run(asked.program, "explain", str(seen), "--json"))
    remedies = [remedy for finding in report["connections"][0]["findings"] for remedy in finding["remedies"]]
    told = {remedy["set"]: remedy["predicted_ns"] for remedy in remedies
            if remedy["set"] not in (None, "again") and remedy["predicted_ns"]}
    if not told:
        return []
    text = (folder / "scenario.toml").read_text().split("[variants.")[0]
    variants = "".join(f'[variants."{at}"]\n{toml(change)}\n' for at, change in enumerate(told))
    scenario = folder / "advised.toml"
    scenario.write_text(f"{text}\n{variants}")
    if not (folder / "advised").exists():
        run(asked.program, "lab", "run", str(scenario), "--backend", asked.backend, "--keep", str(folder / "advised"))
    rows = []
    for at, (change, predicted) in enumerate(told.items()):
        truth = lasted(asked.program, folder / "advised" / f"advised-{at}-0" / capture)
        own = {key: predicted[key] for key in ("low", "best", "high", "now", "by")} | {"truth": truth}
        own["in"] = own["low"] * (1 - SLACK) <= truth <= own["high"] * (1 + SLACK)
        if own["by"] == "model":
            answer = json.loads(run(asked.program, "whatif", str(seen), "--json", "--set", change))["changes"][0]
            same = [answer["low_ns"], answer["account"]["time_ns"], answer["high_ns"]]
            own["same"] = same == [own["low"], own["best"], own["high"]]
        of = [f"{own[key] / 1e6:9.1f}" for key in ("now", "best", "low", "high", "truth")]
        print(f"{folder.name:20} {row['tap']:6} explain: {change:35} by {own['by']:10} "
              f"seen {of[0]} told {of[1]} ({of[2]} to {of[3]}) kernel {of[4]}"
              f"{'' if own['in'] else ' OUT'}{'' if own.get('same', True) else ' WHATIF DIFFERS'}", flush=True)
        rows.append(own)
    return rows


def summary_of_advice(rows):
    for by in sorted({row["by"] for row in rows}):
        of = [row for row in rows if row["by"] == by]
        width = statistics.median((row["high"] - row["low"]) / row["now"] for row in of)
        print(f"explain, by {by}: {sum(row['in'] for row in of)} of {len(of)} in range, width {width:.1%}", end="")
        told = [row["same"] for row in of if "same" in row]
        print(f", {sum(told)} of {len(told)} as whatif says" if told else "")


def take(row, told):
    row["seen"] = told["seen"]["time_ns"]
    row["replay"] = told["replay"]["account"]["time_ns"]
    if not told["repeats"]:
        gap = told["replay"]["widest_gap"]
        row["refused"] = told.get("doubt") or f"not repeated: {gap['state']} by {gap['percent']} %"
        return
    if told["refused"]:
        row["refused"] = told["refused"][0]["why"]
        return
    answer = told["changes"][0]
    row["answer"], row["low"], row["high"] = answer["account"]["time_ns"], answer["low_ns"], answer["high_ns"]
    row["off"] = row["answer"] / row["truth"] - 1
    row["in"] = row["low"] * (1 - SLACK) <= row["truth"] <= row["high"] * (1 + SLACK)


def line(row):
    head = f"{row['folder']:20} {row['tap']:6} {row['change']:44}"
    replay = f"{row['replay'] / row['seen'] - 1:+8.1%}" if "replay" in row else " " * 8
    if "refused" in row:
        return f"{head} {replay} refused: {row['refused'][:110]}"
    of = [f"{row[key] / 1e6:9.1f}" for key in ("seen", "answer", "low", "high", "truth")]
    return f"{head} {replay} seen {of[0]} told {of[1]} ({of[2]} to {of[3]}) kernel {of[4]} {row['off']:+7.1%}" \
        f"{'' if row['in'] else ' OUT'}"


def summary(rows):
    print(f"\n{'':12} {'repeated':>9} {'replay':>14} {'answers':>8} {'in range':>9} {'width':>7} {'off: half, 9 in 10, most':>26}")
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    for kind in [*kinds, "all"]:
        of = [row for row in rows if kind in (row["kind"], "all")]
        # Of a capture that is repeated a single question may still be refused.
        captures = {row["folder"]: row for row in sorted(of, key=lambda row: "answer" in row)}
        repeated = [row for row in captures.values() if "answer" in row]
        replay = [abs(row["replay"] / row["seen"] - 1) for row in repeated]
        answers = [row for row in of if "refused" not in row]
        off = sorted(abs(row["off"]) for row in answers)
        inside = sum(row["in"] for row in answers)
        wide = statistics.median((row["high"] - row["low"]) / row["seen"] for row in answers) if answers else 0
        told = f"{statistics.median(replay):.1%}, {max(replay):.1%}" if replay else ""
        far = f"{statistics.median(off):.1%}, {off[len(off) * 9 // 10]:.1%}, {off[-1]:.1%}" if off else ""
        print(f"{kind:12} {len(repeated):3} of {len(captures):2} {told:>14} {len(answers):8} {inside:9} {wide:7.1%} {far:>26}")


def lasted(program, capture):
    """From the handshake to the last ACK of the data, as the capture of the kernel has it."""
    told = json.loads(run(program, "explain", str(capture), "--json", "--no-predict"))
    directions = [each for each in told["connections"][0]["directions"] if each]
    main = max(directions, key=lambda each: each["bytes"])
    return sum(ns for state, ns in main["time_in"].items() if state not in ("handshake", "syn_retry", "closing"))


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stdout[-500:]} {done.stderr[-500:]}")
    return done.stdout


def toml(change):
    """`KEY=VALUE` as a line of a scenario."""
    key, value = change.split("=", 1)
    plain = value in ("true", "false") or value.isdigit()
    head, dot, sysctl = key.partition(".sysctl.")
    key = f'{head}.sysctl."{sysctl}"' if dot else key
    return f"{key} = {value}" if plain else f'{key} = "{value}"'


def path(dice, rtts=(3, 120), rates=(5, 200)):
    return f'[path]\nrtt = "{log(dice, *rtts)}ms"\nrate = "{log(dice, *rates)}mbit"\n'


def log(dice, low, high):
    """A whole number between the two, small ones as often as large ones."""
    return round(low * (high / low) ** dice.random())


def rtt(dice):
    return f"path.rtt={log(dice, 2, 150)}ms"


def plain(dice):
    queue = dice.choice(["", 'queue = "1 bdp"\n', f'queue = "{log(dice, 20, 400)}kB"\n'])
    text = path(dice) + queue + f'[application]\ndownload = "{log(dice, 50, 4000)}KiB"\n'
    return text, [rtt(dice), f"server.route.initcwnd={dice.choice([20, 30, 40])}",
                  f"client.socket.rcvbuf={log(dice, 30, 400)}kB"]


def ping_pong(dice):
    """Requests in two or three writes, so that Nagle's algorithm meets delayed acknowledgments."""
    pieces = [log(dice, 20, 1200) for _ in range(dice.choice([2, 2, 3]))]
    answer = log(dice, 50, 20000)
    writes = ", ".join(f'"write {piece}B"' for piece in pieces)
    think = f'"sleep {log(dice, 1, 30)}ms", ' if dice.random() < 0.5 else ""
    times = log(dice, 5, 40)
    text = path(dice, rtts=(2, 60)) + "[application]\n" \
        f'client = [{{ repeat = {times}, steps = [{writes}, "read {answer}B"] }}]\n' \
        f'server = [{{ repeat = {times}, steps = ["read {sum(pieces)}B", {think}"write {answer}B"] }}]\n'
    return text, [rtt(dice), "client.socket.nodelay=true"]


def trickle(dice):
    """A server that writes small pieces with pauses."""
    text = path(dice, rtts=(2, 60)) + f'[application]\ndownload = "{log(dice, 20, 300)}KiB"\n' \
        f'write = "{log(dice, 200, 6000)}B"\npause = "{log(dice, 1, 40)}ms"\n'
    return text, [rtt(dice), "server.socket.nodelay=true"]


def chunks(dice):
    """A server that writes larger pieces with pauses."""
    text = path(dice, rtts=(5, 80), rates=(20, 200)) + f'[application]\ndownload = "{log(dice, 500, 3000)}KiB"\n' \
        f'write = "{log(dice, 10, 60)}KiB"\npause = "{log(dice, 5, 100)}ms"\n'
    return text, [rtt(dice), f"server.route.initcwnd={dice.choice([20, 30, 40])}"]


def slow_reader(dice):
    """A client that reads a little at a time, slower than the path."""
    read = log(dice, 2, 64)
    mbit = log(dice, 1, 20)
    pause = max(1, round(read * 1024 * 8 / mbit / 1000))
    text = path(dice, rtts=(3, 60), rates=(40, 200)) + f'[application]\ndownload = "{log(dice, 300, 2000)}KiB"\n' \
        f'read = "{read}KiB"\nread_pause = "{pause}ms"\n'
    if dice.random() < 0.5:
        text = f'[client.socket]\nrcvbuf = "{log(dice, 16, 200)}kB"\n' + text
    return text, [rtt(dice), f"client.socket.rcvbuf={log(dice, 200, 800)}kB"]


def stall(dice):
    """A client that stops reading once."""
    size = log(dice, 500, 3000)
    text = path(dice, rtts=(3, 60), rates=(20, 200)) + f'[application]\ndownload = "{size}KiB"\n' \
        f'stall = "{log(dice, 300, 4000)}ms"\nstall_after = "{round(size * dice.uniform(0.1, 0.6))}KiB"\n'
    if dice.random() < 0.5:
        text = f'[client.socket]\nrcvbuf = "{log(dice, 16, 200)}kB"\n' + text
    return text, [rtt(dice), f"client.socket.rcvbuf={log(dice, 200, 800)}kB"]


def shaper(dice):
    """A token bucket with a queue on the path."""
    text = path(dice, rtts=(5, 60), rates=(100, 400)) + f'[path.down.bucket]\nrate = "{log(dice, 3, 40)}mbit"\n' \
        f'burst = "{log(dice, 10, 600)}kB"\nqueue = "{log(dice, 60, 600)}kB"\n' \
        f'[application]\ndownload = "{log(dice, 500, 5000)}KiB"\n'
    return text, [rtt(dice), f"server.route.initcwnd={dice.choice([20, 30, 40])}"]


def policer(dice):
    """A token bucket without a queue."""
    text = path(dice, rtts=(5, 60), rates=(100, 400)) + f'[path.down.bucket]\nrate = "{log(dice, 3, 40)}mbit"\n' \
        f'burst = "{log(dice, 20, 400)}kB"\nqueue = 0\n[application]\ndownload = "{log(dice, 1000, 5000)}KiB"\n'
    return text, [rtt(dice), f"server.route.initcwnd={dice.choice([20, 30, 40])}"]


def own_shaper(dice):
    """A token bucket at the sender's way out."""
    text = f'[server.egress]\nrate = "{log(dice, 3, 40)}mbit"\nburst = "{log(dice, 5, 200)}kB"\n' \
        f'queue = "{log(dice, 60, 600)}kB"\n' + path(dice, rtts=(5, 60), rates=(100, 400)) \
        + f'[application]\ndownload = "{log(dice, 500, 5000)}KiB"\n'
    return text, [rtt(dice), f"server.route.initcwnd={dice.choice([20, 30, 40])}"]


def answers(dice):
    """Several answers on one connection, with pauses between and work before them."""
    text = path(dice, rtts=(5, 80), rates=(20, 200)) + f'[application]\ndownload = "{log(dice, 20, 800)}KiB"\n' \
        f'times = {log(dice, 3, 12)}\nthink = "{log(dice, 1, 200)}ms"\nidle = "{log(dice, 1, 1000)}ms"\n'
    return text, [rtt(dice), f"server.route.initcwnd={dice.choice([20, 30, 40])}",
                  "server.sysctl.net.ipv4.tcp_slow_start_after_idle=0"]


def small_sndbuf(dice):
    """A sender with a small buffer."""
    text = f'[server.socket]\nsndbuf = "{log(dice, 8, 120)}kB"\n' + path(dice, rates=(50, 200)) \
        + f'[application]\ndownload = "{log(dice, 200, 3000)}KiB"\n'
    return text, [rtt(dice), f"server.socket.sndbuf={log(dice, 120, 600)}kB"]


KINDS = {each.__name__: each for each in (
    plain, answers, ping_pong, trickle, chunks, slow_reader, stall, small_sndbuf, shaper, policer, own_shaper)}

if __name__ == "__main__":
    main()
