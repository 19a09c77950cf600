// The strip: what held the sender, over time. The letters are those of the terminal's strip.

import type { Theme } from "../colors.ts";
import type { Direction, StateWords } from "../data.ts";
import { el } from "../dom.ts";
import { ticks } from "../units.ts";
import type { Frame } from "./paint.ts";
import type { Pen } from "./pen.ts";

export interface Piece {
  from: number;
  to: number;
  letter: string;
}

/** The intervals where they are known, else the equal slices of the strip. */
export function piecesOf(direction: Direction, lifetime: number, states: Map<string, StateWords>): Piece[] {
  if (direction.limits.length > 0) {
    const letters = new Map([...states.values()].map((state) => [state.name, state.letter]));
    return direction.limits.map((limit) => ({ from: limit.start_ns, to: limit.end_ns, letter: letters.get(limit.state) ?? "-" }));
  }
  const letters = [...direction.strip];
  const pieces: Piece[] = [];
  letters.forEach((letter, index) => {
    const [from, to] = [(lifetime * index) / letters.length, (lifetime * (index + 1)) / letters.length];
    const last = pieces[pieces.length - 1];
    if (last?.letter === letter) last.to = to;
    else pieces.push({ from, to, letter });
  });
  return pieces;
}

export function drawStrip(pen: Pen, pieces: Piece[], frame: Frame, start: number, end: number, theme: Theme, states: Map<string, StateWords>): void {
  const { left, right, width } = frame;
  const top = frame.top > 30 ? frame.top : 4;
  const tall = 26;
  const x = (time: number): number => left + ((time - start) / (end - start)) * (width - left - right);
  pen.clip(left, top, width - left - right, tall, () => {
    for (const piece of pieces) {
      if (piece.to < start || piece.from > end) continue;
      const [from, to] = [Math.max(left, x(piece.from)), Math.min(width - right, x(piece.to))];
      const family = states.get(piece.letter)?.family ?? "unknown";
      // A gap of half a pixel keeps neighbours of one colour apart; the shortest is still seen.
      pen.rect(from, top, Math.max(to - from - (to - from > 3 ? 1 : 0), 1), tall, theme.family[family]);
      if (to - from > 13) pen.text((from + to) / 2, top + tall / 2, piece.letter, "#101418", "center", 12);
    }
  });
  const columns = ticks(start, end, Math.max(2, Math.floor((width - left - right) / 95)), "ns");
  for (const time of columns.at) {
    const at = x(time);
    const align = at > width - right - 24 ? "right" : at < left + 12 ? "left" : "center";
    pen.text(at, top + tall + 11, columns.label(time), theme.faint, align, 11);
  }
}

/** The strip in small: its letters as colours beside each other. */
export function slices(strip: string, label: string, states: Map<string, StateWords>, theme: Theme): HTMLElement {
  const letters = [...strip];
  const stops: string[] = [];
  for (let at = 0; at < letters.length; ) {
    let next = at;
    while (next < letters.length && letters[next] === letters[at]) next += 1;
    const color = theme.family[states.get(letters[at])?.family ?? "unknown"];
    stops.push(`${color} ${((at / letters.length) * 100).toFixed(2)}% ${((next / letters.length) * 100).toFixed(2)}%`);
    at = next;
  }
  const node = el("span", { class: "slice", role: "img", "aria-label": label });
  node.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  return node;
}
