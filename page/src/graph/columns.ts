// A series unpacked into columns, and what of it lies in a piece of time.

import type { Series } from "../data.ts";

export interface Columns {
  name: string;
  mark: Series["mark"];
  ink: string;
  rare: boolean;
  length: number;
  from: Float64Array;
  until: Float64Array;
  low: Float64Array;
  high: Float64Array;
  frame: Float64Array | null;
  packets: ArrayLike<number> | null;
  /** No mark lasts longer than this. */
  longest: number;
  /** The same in coarser marks, once it was asked for. */
  coarser?: Columns;
}

/** Marks that one of the next coarser level stands for. */
const EACH = 8;

/** Marks that are drawn one by one for each pixel of the width; of more a coarser level looks the same. */
const A_PIXEL = 4;

/**
 * What is drawn of a series from `start` to `end` over so many pixels: itself, or a level with fewer marks, each
 * with the least and the most of its neighbours.
 */
export function levelFor(series: Columns, start: number, end: number, width: number): Columns {
  let level = series;
  while (!level.rare && level.mark !== "crosses" && level.length > width * A_PIXEL) {
    const [first, last] = visible(level, start, end);
    if (last - first <= width * A_PIXEL) break;
    level.coarser ??= coarse(level);
    level = level.coarser;
  }
  return level;
}

function coarse(series: Columns): Columns {
  const length = Math.ceil(series.length / EACH);
  const [from, until, low, high] = [new Float64Array(length), new Float64Array(length), new Float64Array(length), new Float64Array(length)];
  let longest = 0;
  for (let at = 0; at < length; at += 1) {
    const first = at * EACH;
    const end = Math.min(first + EACH, series.length);
    let [last, least, most] = [series.until[first], series.low[first], series.high[first]];
    for (let index = first + 1; index < end; index += 1) {
      if (series.until[index] > last) last = series.until[index];
      if (series.low[index] < least) least = series.low[index];
      if (series.high[index] > most) most = series.high[index];
    }
    [from[at], until[at], low[at], high[at]] = [series.from[first], last, least, most];
    if (last - from[at] > longest) longest = last - from[at];
  }
  return { ...series, length, from, until, low, high, frame: null, packets: null, longest, coarser: undefined };
}

function summed(differences: number[]): Float64Array {
  const values = new Float64Array(differences.length);
  let sum = 0;
  for (let at = 0; at < values.length; at += 1) {
    sum += differences[at];
    values[at] = sum;
  }
  return values;
}

export function columns(series: Series): Columns {
  const from = summed(series.t);
  const low = summed(series.y);
  const until = series.d ? from.map((value, at) => value + (series.d as number[])[at]) : from;
  const high = series.h ? low.map((value, at) => value + (series.h as number[])[at]) : low;
  return {
    name: series.name,
    mark: series.mark,
    ink: series.ink,
    rare: series.rare ?? false,
    length: from.length,
    from,
    until,
    low,
    high,
    frame: series.f ? summed(series.f) : null,
    packets: series.n ?? null,
    longest: (series.d ?? []).reduce((most, value) => Math.max(most, value), 0),
  };
}

/** The first index whose time is not before `time`. */
export function at(times: Float64Array, time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function isHeld(mark: Series["mark"]): boolean {
  return mark === "steps" || mark === "area" || mark === "band";
}

/** The marks that are to be seen from `start` to `end`: a held value comes in from the left. */
export function visible(series: Columns, start: number, end: number): [number, number] {
  const first = at(series.from, start - series.longest);
  const last = at(series.from, end + 1);
  return [Math.max(0, isHeld(series.mark) ? first - 1 : first), last];
}

/** The greatest and the least value from `start` to `end`; null if nothing is there. */
export function extent(series: Columns, start: number, end: number): [number, number] | null {
  const [first, last] = visible(series, start, end);
  let least = Infinity;
  let most = -Infinity;
  for (let index = first; index < last; index += 1) {
    if (series.low[index] < least) least = series.low[index];
    if (series.high[index] > most) most = series.high[index];
  }
  return least <= most ? [least, most] : null;
}
