// Paints one graph: its frame, its axes and its series. Of more marks than pixels, each column of pixels shows the
// least and the most; marks that are rare are drawn one by one, on top.

import type { Theme } from "../colors.ts";
import type { Unit } from "../units.ts";
import { ticks } from "../units.ts";
import { type Columns, extent, isHeld, levelFor, visible } from "./columns.ts";
import type { Pen } from "./pen.ts";

export interface Frame {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Plot {
  series: Columns[];
  unit: Unit;
  axis: string;
  /** From zero up, or only what is to be seen. */
  fromZero: boolean;
}

export interface Scale {
  x: (time: number) => number;
  y: (value: number) => number;
  low: number;
  high: number;
}

export function scale(plot: Plot, frame: Frame, start: number, end: number): Scale {
  const [low, high] = range(plot, start, end);
  const wide = frame.width - frame.left - frame.right;
  const tall = frame.height - frame.top - frame.bottom;
  return {
    x: (time) => frame.left + ((time - start) / (end - start)) * wide,
    y: (value) => frame.top + (1 - (value - low) / (high - low)) * tall,
    low,
    high,
  };
}

/** A window that is far above the data would press it to the floor: such ceilings do not decide the scale. */
const CEILINGS = new Set(["edge", "window", "cwnd", "bdp", "buffer"]);
const FAR = 2.5;

function range(plot: Plot, start: number, end: number): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  let ceiling = -Infinity;
  const others = plot.series.some((series) => !CEILINGS.has(series.ink));
  for (const series of plot.series) {
    if (series.mark === "ticks") continue;
    const found = extent(series, start, end);
    if (!found) continue;
    if (others && CEILINGS.has(series.ink)) {
      ceiling = Math.max(ceiling, found[1]);
      continue;
    }
    low = Math.min(low, found[0]);
    high = Math.max(high, found[1]);
  }
  if (low > high) return [0, Math.max(1, ceiling)];
  if (plot.fromZero) low = 0;
  if (ceiling > high) high = Math.min(ceiling, low + (high - low) * FAR);
  const room = Math.max((high - low) * 0.06, 1);
  return [plot.fromZero ? 0 : low - room, high + room];
}

/** `exact`: every mark, as files have it; a screen takes levels of them. */
export function paint(pen: Pen, whole: Plot, exact: boolean, frame: Frame, start: number, end: number, theme: Theme, timeAxis: boolean): Scale {
  const level = (series: Columns): Columns => (exact ? series : levelFor(series, start, end, frame.width));
  const plot = { ...whole, series: whole.series.map(level) };
  const to = scale(plot, frame, start, end);
  axes(pen, plot, frame, to, start, end, theme, timeAxis);
  const { left, top } = frame;
  pen.clip(left, top, frame.width - left - frame.right, frame.height - top - frame.bottom, () => {
    const [rare, usual] = [plot.series.filter((series) => series.rare), plot.series.filter((series) => !series.rare)];
    for (const series of [...usual, ...rare]) draw(pen, series, frame, to, start, end, theme);
  });
  return to;
}

function axes(pen: Pen, plot: Plot, frame: Frame, to: Scale, start: number, end: number, theme: Theme, timeAxis: boolean): void {
  const { left, right, top, bottom, width, height } = frame;
  const rows = ticks(to.low, to.high, Math.max(2, Math.floor((height - top - bottom) / 36)), plot.unit);
  for (const value of rows.at) {
    const y = Math.round(to.y(value)) + 0.5;
    if (value < 0 || y < top || y > height - bottom + 1) continue;
    pen.path([left, y, width - right, y], theme.grid, 1);
    pen.text(left - 6, y, rows.label(value), theme.faint, "right", 11);
  }
  const columns = ticks(start, end, Math.max(2, Math.floor((width - left - right) / 95)), "ns");
  for (const time of columns.at) {
    const x = Math.round(to.x(time)) + 0.5;
    pen.path([x, top, x, height - bottom], theme.grid, 1);
    if (!timeAxis) continue;
    const label = columns.label(time);
    // A label at the rim stays inside.
    const align = x > width - right - 24 ? "right" : x < left + 12 ? "left" : "center";
    pen.text(x, height - bottom + 12, label, theme.faint, align, 11);
  }
  pen.path([left + 0.5, top, left + 0.5, height - bottom + 0.5, width - right, height - bottom + 0.5], theme.faint, 1);
  pen.text(left, top - 10, plot.axis, theme.faint, "left", 11);
}

function draw(pen: Pen, series: Columns, frame: Frame, to: Scale, start: number, end: number, theme: Theme): void {
  const color = theme.ink[series.ink] ?? theme.text;
  const [first, last] = visible(series, start, end);
  if (first >= last) return;
  if (isHeld(series.mark)) held(pen, series, first, last, frame, to, color);
  else if (series.mark === "spans") spans(pen, series, first, last, to, color);
  else if (series.mark === "dots") dots(pen, series, first, last, to, color);
  else if (series.mark === "crosses") crosses(pen, series, first, last, to, color);
  else {
    const foot = frame.height - frame.bottom;
    // Closer together they say nothing.
    if ((last - first) * 4 > frame.width) return;
    for (let at = first; at < last; at += 1) pen.rect(Math.round(to.x(series.from[at])), foot - 7, 1, 7, color);
  }
}

function spans(pen: Pen, series: Columns, first: number, last: number, to: Scale, color: string): void {
  const least = series.rare ? 5 : 1.5;
  const thick = series.rare ? 3 : 2;
  let column = NaN;
  let top = 0;
  let foot = 0;
  let wide = 0;
  const put = (): void => {
    if (Number.isNaN(column)) return;
    const tall = Math.max(foot - top, least);
    pen.rect(column - thick / 2, (top + foot) / 2 - tall / 2, Math.max(thick, wide), tall, color);
  };
  for (let at = first; at < last; at += 1) {
    const x = Math.round(to.x(series.from[at]) * 2) / 2;
    const [high, low] = [to.y(series.high[at]), to.y(series.low[at])];
    // Neighbours in one column of pixels that touch are one mark.
    if (x === column && high <= foot + 1 && low >= top - 1) {
      top = Math.min(top, high);
      foot = Math.max(foot, low);
    } else {
      put();
      [column, top, foot] = [x, high, low];
      wide = 0;
    }
    wide = Math.max(wide, to.x(series.until[at]) - x);
  }
  put();
}

function held(pen: Pen, series: Columns, first: number, last: number, frame: Frame, to: Scale, color: string): void {
  const points: number[] = [];
  const lows: number[] = [];
  const edge = frame.width - frame.right;
  let y = NaN;
  for (let at = first; at < last; ) {
    const x = Math.max(frame.left, to.x(series.from[at]));
    // All that falls into this half of a pixel: its extremes, and its last value is held.
    let [low, high] = [series.low[at], series.high[at]];
    let next = at + 1;
    while (next < last && to.x(series.from[next]) < x + 0.5) {
      low = Math.min(low, series.low[next]);
      high = Math.max(high, series.high[next]);
      next += 1;
    }
    if (!Number.isNaN(y)) points.push(x, y);
    if (high !== low && series.mark !== "band") points.push(x, to.y(low), x, to.y(high));
    y = to.y(series.high[next - 1]);
    points.push(x, y);
    lows.push(x, to.y(series.low[next - 1]));
    at = next;
  }
  points.push(edge, y);
  const foot = frame.height - frame.bottom;
  if (series.mark === "area") pen.fill([...points, edge, foot, points[0], foot], color, 0.13);
  if (series.mark === "band") {
    pen.fill([...points, ...stepsBack(lows, edge)], color, 0.28);
    const floor: number[] = [];
    for (let at = 0; at < lows.length; at += 2) {
      if (at > 0) floor.push(lows[at], lows[at - 1]);
      floor.push(lows[at], lows[at + 1]);
    }
    pen.path([...floor, edge, lows[lows.length - 1]], color, 1);
  }
  const isRule = ["least", "bdp", "buffer"].includes(series.ink);
  pen.path(points, color, 1.6, isRule ? [5, 4] : []);
}

/** A floor's steps from right to left. */
function stepsBack(lows: number[], edge: number): number[] {
  const back: number[] = [edge, lows[lows.length - 1]];
  for (let at = lows.length - 2; at >= 0; at -= 2) {
    back.push(lows[at], lows[at + 1]);
    if (at > 0) back.push(lows[at], lows[at - 1]);
  }
  return back;
}

function dots(pen: Pen, series: Columns, first: number, last: number, to: Scale, color: string): void {
  const seen = new Set<number>();
  for (let at = first; at < last; at += 1) {
    const [x, top, foot] = [Math.round(to.x(series.from[at])), Math.round(to.y(series.high[at])), Math.round(to.y(series.low[at]))];
    const place = x * 65_536 + top;
    if (top === foot && seen.has(place)) continue;
    seen.add(place);
    pen.rect(x - 1.5, top - 1.5, 3, foot - top + 3, color);
  }
}

function crosses(pen: Pen, series: Columns, first: number, last: number, to: Scale, color: string): void {
  const points: number[] = [];
  let before = "";
  for (let at = first; at < last; at += 1) {
    const [x, y] = [Math.round(to.x(series.from[at])), Math.round(to.y(series.high[at]))];
    const place = `${x} ${y}`;
    if (place === before) continue;
    before = place;
    points.push(x - 4, y - 4, x + 4, y + 4, NaN, NaN, x - 4, y + 4, x + 4, y - 4, NaN, NaN);
  }
  pen.path(points, color, 1.6);
}
