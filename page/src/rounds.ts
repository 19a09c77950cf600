// The table of rounds that articles draw by hand, and the ceilings of the transfer with the path it took under them.

import type { Theme } from "./colors.ts";
import type { Connection, Direction, Round, StateWords } from "./data.ts";
import { el } from "./dom.ts";
import { CanvasPen, type Pen } from "./graph/pen.ts";
import { bytes, rate, time } from "./units.ts";

/** Rows that are shown at once. */
const AT_ONCE = 60;

/** When a round ends: where the next one begins; the last takes its round trip. */
function end(rounds: Round[], at: number): number {
  return rounds[at + 1]?.start_ns ?? rounds[at].start_ns + (rounds[at].rtt_ns ?? 0);
}

/** What a round sent by its length, in bits a second; null where its length is not known. */
export function pace(rounds: Round[], at: number): number | null {
  const length = end(rounds, at) - rounds[at].start_ns;
  return length > 0 ? (rounds[at].bytes * 8e9) / length : null;
}

export function roundsTable(direction: Direction, side: number, states: Map<string, StateWords>, jump: (from: number, to: number) => void): HTMLElement | null {
  const { rounds } = direction;
  if (rounds.length === 0) return null;
  const names = new Map([...states.values()].map((state) => [state.name, state.bar[side]]));
  const heads = ["round", "from", "sent", "segments", "in flight", "congestion window", "window left", "round trip", "sent at", "then waited for"];
  const body = el("tbody");
  const row = (at: number): HTMLTableRowElement => {
    const round = rounds[at];
    const sent = pace(rounds, at);
    const { low, high, best } = round.cwnd;
    const window = low === null && high === null ? (best ?? "") : low === high ? `${low}` : high === null ? `${low} or more` : `${low ?? 0} to ${high}`;
    const cell = (text: string): HTMLElement => el("td", { class: "number" }, text);
    return el(
      "tr",
      {},
      el("td", {}, el("button", { type: "button", class: "link", onclick: () => jump(round.start_ns, end(rounds, at)), "aria-label": `Show round ${at + 1}` }, String(at + 1))),
      cell(time(round.start_ns)),
      cell(bytes(round.bytes)),
      cell(String(round.segments)),
      cell(bytes(round.in_flight_bytes)),
      cell(window === "" ? "" : `${window}`),
      cell(round.window_room_bytes === null ? "" : bytes(round.window_room_bytes)),
      cell(round.rtt_ns === null ? "" : time(round.rtt_ns)),
      cell(sent === null ? "" : rate(sent)),
      el("td", {}, names.get(round.limited_by) ?? round.limited_by),
    );
  };
  const fill = (from: number, to: number): void => body.append(...rounds.slice(from, to).map((_, at) => row(from + at)));
  fill(0, AT_ONCE);
  const left = rounds.length - AT_ONCE;
  const more = el("button", { type: "button", class: "link" }, `Show more (${left})`);
  more.addEventListener("click", () => {
    fill(AT_ONCE, rounds.length);
    more.remove();
  });
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((name, at) => el("th", { scope: "col", class: at > 0 && at < 9 ? "number" : "" }, name)))), body);
  return el("details", { class: "rounds" }, el("summary", {}, `Rounds (${rounds.length})`), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of rounds" }, table), left > 0 ? more : null);
}

const CEILINGS: Record<string, [string, string]> = {
  link: ["link", "path"],
  receive_window: ["largest receive window", "window"],
  congestion_window: ["largest congestion window", "congestion"],
  send_buffer: ["send buffer", "sender"],
  loss: ["what losses leave", "loss"],
  application: ["the program", "program"],
  initial_window: ["climb from the initial window", "round"],
};

export function ceilings(connection: Connection, side: number, theme: Theme): HTMLElement | null {
  const direction = connection.directions[side];
  const rounds = direction?.rounds ?? [];
  const points = rounds.map((round, at) => ({ flight: round.in_flight_bytes, sent: pace(rounds, at) ?? 0 })).filter((point) => point.sent > 0 && point.flight > 0);
  if (!direction || points.length < 2) return null;
  const canvas = el("canvas", { role: "img", "aria-label": `Ceilings: ${direction.ceilings.map((each) => `${CEILINGS[each.kind]?.[0] ?? each.kind} ${rate(each.rate_bps)}`).join(", ")}` });
  const node = el(
    "details",
    { class: "ceilings" },
    el("summary", {}, "Ceilings: how fast it could have been"),
    el("p", { class: "hint" }, "Each point is a round: how much was in flight, and how fast the round was sent. A line joins them in their order, from the first to the last, which are larger. The slope is what the distance allows: rate is flight divided by the round trip. A line across is a ceiling. The lowest one is what limits; the distance to the next is the most that its removal can gain. A round above the link's rate fills a queue. Rates of the climb, of losses and of the program are averages: single rounds may be faster."),
    canvas,
  );
  const draw = (): void => {
    const width = Math.max(280, canvas.clientWidth || 600);
    const height = 340;
    const density = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [width * density, height * density];
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    if (!context) return;
    context.scale(density, density);
    context.fillStyle = theme.ground;
    context.fillRect(0, 0, width, height);
    roof(new CanvasPen(context), direction, points, width, height, theme);
  };
  node.addEventListener("toggle", () => node.open && draw());
  return node;
}

/** A round: bytes in flight, and bits a second. */
interface Point {
  flight: number;
  sent: number;
}

function roof(pen: Pen, direction: Direction, points: Point[], width: number, height: number, theme: Theme): void {
  const [left, right, top, bottom] = [78, 14, 22, 36];
  const flights = points.map((point) => point.flight);
  const rates = [...points.map((point) => point.sent), ...direction.ceilings.map((each) => each.rate_bps)];
  const [x0, x1] = [Math.log10(Math.min(...flights)) - 0.15, Math.log10(Math.max(...flights)) + 0.3];
  const [y0, y1] = [Math.log10(Math.min(...rates)) - 0.15, Math.log10(Math.max(...rates)) + 0.2];
  const x = (flight: number): number => left + ((Math.log10(flight) - x0) / (x1 - x0)) * (width - left - right);
  const y = (value: number): number => top + (1 - (Math.log10(value) - y0) / (y1 - y0)) * (height - top - bottom);
  for (let power = Math.floor(y0); power <= y1; power += 1) {
    for (const factor of [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (Math.log10(value) < y0 || Math.log10(value) > y1) continue;
      pen.path([left, y(value), width - right, y(value)], theme.grid, 1);
      if (factor === 1 || y1 - y0 < 2.2) pen.text(left - 6, y(value), rate(value), theme.faint, "right", 11);
    }
  }
  for (let power = 0; 2 ** power < 10 ** x1; power += x1 - x0 < 1.2 ? 1 : width < 500 ? 3 : 2) {
    const value = 2 ** power;
    if (Math.log10(value) < x0) continue;
    pen.path([x(value), top, x(value), height - bottom], theme.grid, 1);
    pen.text(x(value), height - bottom + 12, value < 1024 ? `${value} B` : bytes(Math.max(value, 10_000) === value ? value : value), theme.faint, "center", 11);
  }
  pen.text(left, top - 10, "bits a second", theme.faint, "left", 11);
  pen.text(width - right, height - 8, "bytes in flight", theme.faint, "right", 11);
  pen.clip(left, top, width - left - right, height - top - bottom, () => {
    const trip = direction.rtt.min_ns;
    if (trip) {
      const [from, to] = [10 ** x0, 10 ** x1];
      pen.path([x(from), y((from * 8e9) / trip), x(to), y((to * 8e9) / trip)], theme.faint, 1.4, [6, 4]);
    }
    for (const each of direction.ceilings) pen.path([left, y(each.rate_bps), width - right, y(each.rate_bps)], theme.family[CEILINGS[each.kind]?.[1] ?? "unknown"], 2.2, each.proven ? [] : [3, 3]);
    pen.path(points.flatMap((point) => [x(point.flight), y(point.sent)]), theme.faint, 0.8);
    points.forEach((point, at) => {
      const size = at === 0 || at === points.length - 1 ? 7 : 4;
      pen.rect(x(point.flight) - size / 2, y(point.sent) - size / 2, size, size, theme.ink.rate);
    });
  });
  // Names above their lines, or below where another line is near.
  let last = -Infinity;
  const size = width < 500 ? 11 : 12;
  for (const each of [...direction.ceilings].sort((a, b) => b.rate_bps - a.rate_bps)) {
    const line = y(each.rate_bps);
    const above = Math.max(line - 8, top + 6);
    const at = above >= last + 16 ? above : Math.max(line + 9, last + 14);
    last = at;
    const name = `${CEILINGS[each.kind]?.[0] ?? each.kind}: ${rate(each.rate_bps)}${each.proven ? "" : " (computed)"}`;
    // Lines and points that pass behind a name do not cross it.
    pen.rect(left + 5, at - 8, name.length * size * 0.525 + 6, 15, theme.ground);
    pen.text(left + 8, at, name, theme.text, "left", size);
  }
}
