// The settings that can be moved over a measured transfer: each has places, one of which is what it was.

import { bytes, rate, time } from "./units.ts";

/** What the model fitted to the capture; what is null is the kernel's own. */
export interface Fitted {
  rtt_ns: number;
  /** 0 is unlimited. */
  rate_bps: number;
  queue_bytes: number | null;
  initcwnd: number | null;
  congctl: string;
  restarts: boolean;
  loss_ppm: number;
}

interface Place {
  label: string;
  /** `KEY=VALUE`; null is as it was. */
  set: string | null;
}

export interface Knob {
  id: string;
  label: string;
  places: Place[];
  /** Where it was. */
  home: number;
  at: number;
}

const MS = 1e6;
const KIB = 1024;

export function knobsOf(fitted: Fitted, sender: "client" | "server"): Knob[] {
  const receiver = sender === "server" ? "client" : "server";
  // The least, the first and the largest size, as the kernel takes them.
  const three = (most: number, first: number): string => `4096 ${Math.min(first, most)} ${most}`;
  const sizes = [16, 32, 64, 128, 256, 512, 1024, 4096, 16_384, 65_536].map((kib) => kib * KIB);
  const percent = fitted.loss_ppm / 10_000;
  return [
    among("rtt", "round trip", [0.2, 0.5, 1, 2, 5, 10, 20, 40, 60, 80, 100, 150, 200, 300].map((ms) => ms * MS), fitted.rtt_ns, time, (ns) => `path.rtt=${ns}ns`),
    among("rate", "link", [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000].map((mbit) => mbit * 1e6), fitted.rate_bps === 0 ? Infinity : fitted.rate_bps, (bps) => (bps === Infinity ? "unlimited" : rate(bps)), (bps) => `path.rate=${bps}bit`),
    among("queue", "queue", [4, 16, 32, 64, 128, 256, 512, 1024, 4096].map((kib) => kib * KIB), fitted.queue_bytes ?? Infinity, (size) => (size === Infinity ? "endless" : bytes(size)), (size) => `path.queue=${size}B`),
    among("initcwnd", "initial window", [1, 2, 3, 4, 10, 16, 20, 30, 44, 64, 100, 200], fitted.initcwnd ?? 10, (count) => (count === 1 ? "1 segment" : `${count} segments`), (count) => `${sender}.route.initcwnd=${count}`),
    first("wmem", "send buffer", sizes, bytes, (size) => `${sender}.sysctl.net.ipv4.tcp_wmem=${three(size, 16_384)}`),
    first("rmem", "receive buffer", sizes, bytes, (size) => `${receiver}.sysctl.net.ipv4.tcp_rmem=${three(size, 131_072)}`),
    among("loss", "loss", [0, 0.01, 0.1, 0.5, 1, 2, 5], percent, (share) => (share === 0 ? "none" : `${Number(share.toPrecision(2))} %`), (share) => `path.loss=${share}%`),
    named("restarts", "idle restart", ["on", "off"], fitted.restarts ? "on" : "off", (word) => `${sender}.sysctl.net.ipv4.tcp_slow_start_after_idle=${word === "on" ? 1 : 0}`),
    named("congctl", "controller", ["cubic", "reno", "bbr"], fitted.congctl, (word) => `${sender}.route.congctl=${word}`),
  ];
}

/** Values in their order, with what it was among them. */
function among(id: string, label: string, values: number[], was: number, shown: (value: number) => string, set: (value: number) => string): Knob {
  const others = values.filter((value) => was === Infinity || Math.abs(value - was) > was * 0.01);
  const sorted = [...others, was].sort((a, b) => a - b);
  const places = sorted.map((value) => (value === was ? { label: shown(value), set: null } : { label: shown(value), set: set(value) }));
  const home = sorted.indexOf(was);
  return { id, label, places, home, at: home };
}

/** Values behind what it was, which no figure says. */
function first(id: string, label: string, values: number[], shown: (value: number) => string, set: (value: number) => string): Knob {
  const places: Place[] = [{ label: "as it was", set: null }, ...values.map((value) => ({ label: shown(value), set: set(value) }))];
  return { id, label, places, home: 0, at: 0 };
}

function named(id: string, label: string, words: string[], was: string, set: (word: string) => string): Knob {
  const all = words.includes(was) ? words : [was, ...words];
  const places = all.map((word) => (word === was ? { label: word, set: null } : { label: word, set: set(word) }));
  const home = all.indexOf(was);
  return { id, label, places, home, at: home };
}

export function changesOf(knobs: Knob[]): string[] {
  return knobs.map((knob) => knob.places[knob.at].set).filter((set): set is string => set !== null);
}

/** Moves the knobs to these changes; those that no knob has are returned. */
export function placed(knobs: Knob[], changes: string[]): string[] {
  return changes.filter((change) => {
    for (const knob of knobs) {
      const at = knob.places.findIndex((place) => place.set === change);
      if (at < 0) continue;
      knob.at = at;
      return false;
    }
    return true;
  });
}
