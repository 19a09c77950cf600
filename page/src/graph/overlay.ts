// Another transfer over the graphs of this one, at the same start: what the model says of a change, or a second connection.

import type { Figure } from "../data.ts";
import { type Columns, columns } from "./columns.ts";
import type { Piece } from "./strip.ts";

export interface Overlay {
  /** What the legend adds to the names of its series. */
  label: string;
  figures: Figure[];
  pieces: Piece[];
  /** When it ends. */
  end: number;
  /** Time and bytes that lie before what it shows. */
  before: [number, number];
  /** A level to be drawn over one graph. */
  rule: { figure: string; name: string; value: number } | null;
}

/** Which series of each graph are laid over it, by their ink: more would hide what was measured. */
const LAID: Record<string, string[]> = { sequence: ["data"], flight: ["flight"], rate: ["rate"], rtt: ["stack"], window: ["window"] };

/** What `over` lays over the graph `id`. */
export function laid(over: Overlay, id: string): Columns[] {
  const figure = over.figures.find((each) => each.id === id);
  const chosen = (figure?.series ?? []).filter((series) => LAID[id]?.includes(series.ink));
  const list = chosen.map((series) => shifted(columns(series), over, id === "sequence"));
  if (over.rule?.figure === id) {
    const { name, value } = over.rule;
    list.push(columns({ name, mark: "steps", ink: "buffer", t: [0], y: [value] }));
  }
  return list;
}

function shifted(series: Columns, over: Overlay, counts: boolean): Columns {
  const [ns, bytes] = over.before;
  let first = 0;
  while (first < series.length && series.from[first] < ns) first += 1;
  const moved = (values: Float64Array, by: number): Float64Array => values.slice(first).map((value) => value - by);
  return {
    ...series,
    name: `${series.name}, ${over.label}`,
    mark: series.mark === "area" ? "steps" : series.mark,
    ink: "other",
    length: series.length - first,
    from: moved(series.from, ns),
    until: moved(series.until, ns),
    low: moved(series.low, counts ? bytes : 0),
    high: moved(series.high, counts ? bytes : 0),
    frame: null,
    packets: series.packets ? Array.from(series.packets).slice(first) : null,
  };
}

/** Its strip, from its own start. */
export function piecesBehind(over: Overlay): Piece[] {
  const [ns] = over.before;
  return over.pieces.filter((piece) => piece.to > ns).map((piece) => ({ ...piece, from: Math.max(0, piece.from - ns), to: piece.to - ns }));
}
