// Quantities in words, as the command prints them, and round steps for axes.

export type Unit = "B" | "bit/s" | "ns";

const NARROW = "\u00a0";

const HOUR = 3600e9;

/** Three digits that count: 6.86 ms, 56.2 ms, 412 ms. Seconds go up to ten hours, hours to ten days. */
export function time(ns: number): string {
  const size = Math.abs(ns);
  const [value, unit] = size >= 240 * HOUR ? [ns / HOUR / 24, "d"] : size >= 10 * HOUR ? [ns / HOUR, "h"] : size >= 1e9 ? [ns / 1e9, "s"] : size >= 1e6 ? [ns / 1e6, "ms"] : size >= 1e3 ? [ns / 1e3, "µs"] : [ns, "ns"];
  return `${unit === "ns" ? Math.round(value) : three(value)}${NARROW}${unit}`;
}

export function bytes(count: number): string {
  const size = Math.abs(count);
  if (size < 10_000) return `${Math.round(count)}${NARROW}B`;
  let value = count / 1024;
  let unit = 0;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  while (Math.abs(value) >= 1000 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${Math.abs(value) < 99.5 ? value.toFixed(1) : value.toFixed(0)}${NARROW}${units[unit]}`;
}

export function rate(bps: number): string {
  const size = Math.abs(bps);
  const [value, unit] = size >= 1e9 ? [bps / 1e9, "Gbit/s"] : size >= 1e6 ? [bps / 1e6, "Mbit/s"] : size >= 1e3 ? [bps / 1e3, "kbit/s"] : [bps, "bit/s"];
  return `${three(value)}${NARROW}${unit}`;
}

export function quantity(value: number, unit: Unit): string {
  return unit === "B" ? bytes(value) : unit === "bit/s" ? rate(value) : time(value);
}

function three(value: number): string {
  const size = Math.abs(value);
  return size >= 99.95 ? value.toFixed(0) : size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

export interface Ticks {
  at: number[];
  label: (value: number) => string;
}

/** Round places from `low` to `high`, at most `most` of them, all in one unit. */
export function ticks(low: number, high: number, most: number, unit: Unit): Ticks {
  const span = Math.max(high - low, 1);
  const [scale, name] = scaled(Math.max(Math.abs(low), Math.abs(high)), span, unit);
  let step = roundStep(span / scale / Math.max(most, 1)) * scale;
  let at = places(low, high, step);
  // One label tells no scale: then they stand closer.
  if (at.length < 2) {
    step = roundStep((step / scale) * 0.3) * scale;
    at = places(low, high, step);
  }
  const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / scale) + 1e-9)));
  return { at, label: (value) => (value === 0 ? "0" : `${(value / scale).toFixed(digits)}${NARROW}${name}`) };
}

function places(low: number, high: number, step: number): number[] {
  const at: number[] = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9 && at.length < 1000; n += 1) at.push(n * step);
  return at;
}

function scaled(size: number, span: number, unit: Unit): [number, string] {
  const units: [number, string][] =
    unit === "B"
      ? [[1, "B"], [1024, "KiB"], [1024 ** 2, "MiB"], [1024 ** 3, "GiB"], [1024 ** 4, "TiB"]]
      : unit === "bit/s"
        ? [[1, "bit/s"], [1e3, "kbit/s"], [1e6, "Mbit/s"], [1e9, "Gbit/s"]]
        : [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
  // In a small piece far from zero the larger unit would need many digits.
  const fits = units.filter(([scale]) => scale <= size && scale <= span * 1000);
  return fits[fits.length - 1] ?? units[0];
}

/** 1, 2 or 5 times a power of ten, not below `least`. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-12)));
  for (const factor of [1, 2, 5]) if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}
