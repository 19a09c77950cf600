// The graphs of one direction under each other, on one axis of time: zoom and cursor are the same in all, and the
// strip of what held the sender lies under them.

import type { Theme } from "../colors.ts";
import type { Connection, Figure, StateWords } from "../data.ts";
import { el, plain } from "../dom.ts";
import { quantity, time } from "../units.ts";
import { type Columns, at, columns, isHeld } from "./columns.ts";
import { type Frame, paint } from "./paint.ts";
import { CanvasPen, FONT, type Pen, SvgPen } from "./pen.ts";
import { type Overlay, laid, piecesBehind } from "./overlay.ts";
import { type Piece, drawStrip, piecesOf } from "./strip.ts";

interface Panel {
  figure: Figure;
  series: Columns[];
  /** Of another transfer. */
  over: Columns[];
  canvas: HTMLCanvasElement;
  readout: HTMLElement;
  hidden: Set<string>;
}

const STRIP_TALL = 58;

/** Graphs out of sight are drawn when nothing has changed for so long. */
const LATER_MS = 60;

/** A canvas with the lines of the cursor over it, which move without drawing the graph anew. */
interface Sheet {
  canvas: HTMLCanvasElement;
  line: HTMLElement;
  chosen: HTMLElement;
  node: HTMLElement;
}

function sheetOf(canvas: HTMLCanvasElement): Sheet {
  const line = el("span", { class: "cursor", hidden: true });
  const chosen = el("span", { class: "chosen-time", hidden: true });
  return { canvas, line, chosen, node: el("div", { class: "sheet" }, canvas, chosen, line) };
}

export class Stack {
  readonly node = el("div", { class: "stack" });
  private readonly panels: Panel[];
  private readonly strip = el("canvas", { class: "strip", role: "img", tabindex: "-1" });
  private readonly sheets: Sheet[] = [];
  private later = 0;
  private readonly said = el("p", { class: "said", "aria-live": "polite" });
  private readonly full: [number, number];
  private readonly overStrip = el("canvas", { class: "strip", role: "img", tabindex: "-1" });
  private readonly overPart: HTMLElement;
  private readonly overLabel = el("p", { class: "hint" });
  private overPieces: Piece[] = [];
  private start: number;
  private end: number;
  private cursor: number | null = null;
  private asked = false;
  private drag: { from: number; x: number; pan: boolean; start: number; end: number } | null = null;
  private theme: Theme;

  constructor(
    figures: Figure[],
    private readonly connection: Connection,
    private readonly side: number,
    private readonly states: Map<string, StateWords>,
    theme: Theme,
    private readonly onZoom: (start: number, end: number) => void,
  ) {
    this.theme = theme;
    this.full = [0, Math.max(1, connection.duration_ns)];
    [this.start, this.end] = this.full;
    this.panels = figures.map((figure) => this.panel(figure));
    this.overPart = el("div", { hidden: true }, this.overLabel, this.sheet(this.overStrip));
    const title = el("h3", {}, "What held the sender");
    const direction = connection.directions[side];
    const held = direction ? piecesOf(direction, connection.duration_ns, states) : [];
    const legend = el("ul", { class: "legend" }, ...this.keys(held));
    this.node.append(el("section", { class: "panel strip-panel" }, el("div", { class: "panel-head" }, title, legend), this.sheet(this.strip), this.overPart, this.said));
    this.listen(this.strip);
    this.listen(this.overStrip);
    this.strip.setAttribute("aria-label", `What held the sender over time: ${summary(held, states, side)}`);
  }

  /** The letters of the strip, with the names of their states. */
  private keys(held: { letter: string }[]): HTMLElement[] {
    const letters = [...new Set(held.map((piece) => piece.letter))];
    return letters.map((letter) => {
      const words = this.states.get(letter);
      const mark = el("span", { class: "swatch letter", "aria-hidden": "true" }, letter);
      mark.style.background = this.theme.family[words?.family ?? "unknown"];
      return el("li", {}, mark, words?.bar[this.side] ?? "not decided");
    });
  }

  /** The same graphs with more marks. */
  refine(figures: Figure[]): void {
    for (const panel of this.panels) {
      const figure = figures.find((each) => each.id === panel.figure.id);
      if (!figure) continue;
      panel.series = figure.series.map(columns);
      this.legend(panel);
    }
    this.ask();
  }

  /** Lays another transfer over this one, or takes it away; draws at once. */
  overlay(over: Overlay | null): void {
    const whole = this.isWhole();
    this.full[1] = Math.max(1, this.connection.duration_ns, over ? over.end - over.before[0] : 0);
    this.overPieces = over ? piecesBehind(over) : [];
    this.overPart.hidden = this.overPieces.length === 0;
    this.overLabel.textContent = over?.label ?? "";
    this.overStrip.setAttribute("aria-label", `${over?.label ?? ""}: ${summary(this.overPieces, this.states, this.side)}`);
    for (const panel of this.panels) {
      const names = panel.over.map((each) => each.name).join();
      panel.over = over ? laid(over, panel.figure.id) : [];
      if (names !== panel.over.map((each) => each.name).join()) this.legend(panel);
    }
    if (whole) [this.start, this.end] = this.full;
    this.show(this.start, this.end, false);
    this.draw();
  }

  /** Shows another piece of time. */
  show(start: number, end: number, tells = true): void {
    const least = Math.max(1_000, (this.full[1] - this.full[0]) / 1e7);
    const span = Math.min(Math.max(end - start, least), this.full[1] - this.full[0]);
    const middle = (start + end) / 2;
    let from = middle - span / 2;
    from = Math.max(this.full[0], Math.min(from, this.full[1] - span));
    [this.start, this.end] = [from, from + span];
    if (tells) this.onZoom(this.start, this.end);
    this.ask();
  }

  whole(): void {
    this.show(this.full[0], this.full[1]);
  }

  window(): [number, number] {
    return [this.start, this.end];
  }

  isWhole(): boolean {
    return this.start <= this.full[0] && this.end >= this.full[1];
  }

  zoom(factor: number, around = this.cursor ?? (this.start + this.end) / 2): void {
    const left = (around - this.start) * factor;
    const right = (this.end - around) * factor;
    this.show(around - left, around + right);
  }

  pan(part: number): void {
    const by = (this.end - this.start) * part;
    this.show(this.start + by, this.end + by);
  }

  paintIn(theme: Theme): void {
    this.theme = theme;
    for (const panel of this.panels) this.legend(panel);
    this.ask();
  }

  /** Puts a canvas under the cursor's lines. */
  private sheet(canvas: HTMLCanvasElement): HTMLElement {
    const sheet = sheetOf(canvas);
    this.sheets.push(sheet);
    return sheet.node;
  }

  /** Draws with the next picture of the screen. */
  ask(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  }

  /** Scrolls a graph into view. */
  reveal(id: string): void {
    const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.panels.find((panel) => panel.figure.id === id)?.canvas.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
  }

  draw(): void {
    const inSight = (canvas: HTMLCanvasElement): boolean => {
      const box = canvas.getBoundingClientRect();
      return box.bottom > -50 && box.top < window.innerHeight + 50;
    };
    const others: Panel[] = [];
    for (const panel of this.panels) {
      if (inSight(panel.canvas)) this.drawOne(panel);
      else others.push(panel);
    }
    window.clearTimeout(this.later);
    this.later = window.setTimeout(() => others.forEach((panel) => this.drawOne(panel)), LATER_MS);
    const { pen, frame } = this.cleared(this.strip, STRIP_TALL);
    this.drawStrip(pen, frame);
    if (!this.overPart.hidden) {
      const over = this.cleared(this.overStrip, STRIP_TALL);
      drawStrip(over.pen, this.overPieces, over.frame, this.start, this.end, this.theme, this.states);
    }
    this.point();
  }

  private drawOne(panel: Panel): void {
    const { pen, frame } = this.cleared(panel.canvas, panel.figure.id === "sequence" ? 360 : 210);
    this.drawPanel(pen, panel, frame);
  }

  /** Moves the cursor's lines, and tells what is under them. */
  private point(): void {
    const { cursor, drag } = this;
    const isShown = cursor !== null && cursor >= this.start && cursor <= this.end;
    for (const { canvas, line, chosen } of this.sheets) {
      const frame = framed(canvas.clientWidth, canvas.clientHeight);
      const x = (time: number): number => frame.left + ((time - this.start) / (this.end - this.start)) * (frame.width - frame.left - frame.right);
      line.hidden = !isShown;
      chosen.hidden = !(isShown && drag && !drag.pan);
      if (!isShown) continue;
      line.style.left = `${x(cursor)}px`;
      if (!drag || drag.pan) continue;
      const [from, to] = [x(drag.from), x(cursor)].sort((a, b) => a - b);
      chosen.style.left = `${from}px`;
      chosen.style.width = `${to - from}px`;
    }
    for (const panel of this.panels) this.tell(panel);
    this.tellState();
  }

  private drawPanel(pen: Pen, panel: Panel, frame: Frame, exact = false): void {
    const { figure } = panel;
    const series = [...panel.series, ...panel.over].filter((each) => !panel.hidden.has(each.name));
    const plot = { series, unit: figure.unit, axis: figure.axis, fromZero: figure.id !== "sequence" };
    paint(pen, plot, exact, frame, this.start, this.end, this.theme, true);
  }

  private drawStrip(pen: Pen, frame: Frame): void {
    const direction = this.connection.directions[this.side];
    if (!direction) return;
    const pieces = piecesOf(direction, this.connection.duration_ns, this.states);
    drawStrip(pen, pieces, frame, this.start, this.end, this.theme, this.states);
  }

  private cleared(canvas: HTMLCanvasElement, tall: number): { pen: CanvasPen; frame: Frame } {
    const width = Math.max(240, canvas.clientWidth || canvas.parentElement?.clientWidth || 600);
    const height = width < 500 && tall > 250 ? 280 : tall;
    const density = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * density) || canvas.height !== Math.round(height * density)) {
      canvas.width = Math.round(width * density);
      canvas.height = Math.round(height * density);
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    if (!context) throw new Error("this browser draws no canvas");
    context.setTransform(density, 0, 0, density, 0, 0);
    context.fillStyle = this.theme.ground;
    context.fillRect(0, 0, width, height);
    return { pen: new CanvasPen(context), frame: framed(width, height) };
  }

  private panel(figure: Figure): Panel {
    const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": `${figure.title}. ${plain(figure.about)}` });
    const readout = el("p", { class: "readout" });
    const series = figure.series.map(columns);
    const panel: Panel = { figure, series, over: [], canvas, readout, hidden: new Set() };
    const save = (kind: "png" | "svg") => el("button", { type: "button", class: "quiet", onclick: () => void this.save(panel, kind) }, kind.toUpperCase());
    this.node.append(
      el(
        "section",
        { class: "panel", id: `graph-${figure.id}` },
        el("div", { class: "panel-head" }, el("h3", {}, figure.title), el("ul", { class: "legend" }), el("span", { class: "saves" }, save("png"), save("svg"))),
        this.sheet(canvas),
        readout,
        el("details", {}, el("summary", {}, "What am I looking at?"), el("p", {}, plain(figure.about)), this.notes(figure)),
      ),
    );
    this.listen(canvas);
    this.legend(panel);
    return panel;
  }

  private notes(figure: Figure): HTMLElement | null {
    if (!figure.notes?.length) return null;
    const items = figure.notes.map((note) => {
      const color = this.theme.family[this.states.get(note.letter)?.family ?? "unknown"];
      const mark = el("span", { class: "swatch", "aria-hidden": "true" });
      mark.style.background = color;
      const go = el("button", { type: "button", class: "link", onclick: () => this.jump(note.from_ns, note.to_ns, figure.id) }, mark, `from ${time(note.from_ns)}, ${plain(note.text)}`);
      return el("li", {}, go);
    });
    return el("ol", { class: "notes" }, ...items);
  }

  /** Shows a piece of time with some room around it. */
  jump(from: number, to: number, id = "sequence"): void {
    const room = Math.max((to - from) * 0.35, this.full[1] * 0.004);
    this.cursor = from;
    this.show(from - room, to + room);
    this.reveal(id);
  }

  private legend(panel: Panel): void {
    const list = panel.canvas.closest(".panel")?.querySelector(".legend");
    list?.replaceChildren(
      ...[...panel.series, ...panel.over].map((series) => {
        const mark = el("span", { class: `swatch ${series.mark}`, "aria-hidden": "true" });
        mark.style.background = this.theme.ink[series.ink] ?? this.theme.text;
        const shown = !panel.hidden.has(series.name);
        const toggle = (): void => {
          if (shown) panel.hidden.add(series.name);
          else panel.hidden.delete(series.name);
          this.legend(panel);
          this.ask();
        };
        const count = series.rare || series.mark === "crosses" ? ` (${series.length})` : "";
        return el("li", {}, el("button", { type: "button", class: shown ? "key" : "key off", "aria-pressed": String(shown), onclick: toggle }, mark, series.name + count));
      }),
    );
  }

  private listen(canvas: HTMLCanvasElement): void {
    const timeOf = (event: MouseEvent): number => {
      const box = canvas.getBoundingClientRect();
      const frame = framed(box.width, box.height);
      const part = (event.clientX - box.left - frame.left) / (box.width - frame.left - frame.right);
      return this.start + Math.min(1, Math.max(0, part)) * (this.end - this.start);
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 1) return;
      canvas.setPointerCapture(event.pointerId);
      const pan = event.button === 1 || event.shiftKey || event.pointerType === "touch";
      this.drag = { from: timeOf(event), x: event.clientX, pan, start: this.start, end: this.end };
    });
    canvas.addEventListener("pointermove", (event) => {
      this.cursor = timeOf(event);
      const { drag } = this;
      if (drag?.pan) {
        const box = canvas.getBoundingClientRect();
        const by = ((drag.x - event.clientX) / box.width) * (drag.end - drag.start);
        this.show(drag.start + by, drag.end + by);
      }
      this.point();
    });
    const ends = (event: PointerEvent): void => {
      const { drag } = this;
      this.drag = null;
      if (drag && !drag.pan && Math.abs(event.clientX - drag.x) > 5) {
        const to = timeOf(event);
        this.show(Math.min(drag.from, to), Math.max(drag.from, to));
      }
      this.point();
    };
    canvas.addEventListener("pointerup", ends);
    canvas.addEventListener("pointercancel", () => {
      this.drag = null;
    });
    canvas.addEventListener("pointerleave", () => {
      if (this.drag) return;
      this.cursor = null;
      this.point();
    });
    canvas.addEventListener("dblclick", () => this.whole());
    canvas.addEventListener(
      "wheel",
      (event) => {
        // The page scrolls with the wheel; with a key held the graph zooms, as maps do.
        if (!event.ctrlKey && !event.altKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(Math.exp(Math.sign(event.deltaY) * 0.25), timeOf(event));
      },
      { passive: false },
    );
  }

  /** What is under the cursor, in figures, with frames. */
  private tell(panel: Panel): void {
    const { cursor } = this;
    if (cursor === null) {
      panel.readout.textContent = "";
      return;
    }
    const parts: string[] = [`${time(cursor)}:`];
    let frame = 0;
    for (const series of [...panel.series, ...panel.over]) {
      if (series.mark === "ticks" || panel.hidden.has(series.name)) continue;
      const next = at(series.from, cursor + 1);
      if (next === 0) continue;
      const index = next - 1;
      const near = Math.abs(series.from[index] - cursor) < (this.end - this.start) / 100;
      if (!isHeld(series.mark) && !near) continue;
      const [low, high] = [series.low[index], series.high[index]];
      const value = low === high ? quantity(low, panel.figure.unit) : `${quantity(low, panel.figure.unit)} to ${quantity(high, panel.figure.unit)}`;
      const number = series.packets?.[index] ?? 1;
      parts.push(`${series.name} ${value}${number > 1 ? ` (${number} packets)` : ""};`);
      if (series.frame && near) frame = series.frame[index];
    }
    if (frame > 0) parts.push(`frame.number == ${frame}`);
    panel.readout.textContent = parts.join(" ");
  }

  private tellState(): void {
    const { cursor } = this;
    const direction = this.connection.directions[this.side];
    if (cursor === null || !direction) {
      this.said.textContent = "";
      return;
    }
    const piece = piecesOf(direction, this.connection.duration_ns, this.states).find((each) => each.from <= cursor && cursor < each.to);
    const words = piece && this.states.get(piece.letter);
    this.said.textContent = piece && words ? `${time(cursor)}: ${words.bar[this.side]} (${words.name}), ${time(piece.from)} to ${time(piece.to)}` : "";
  }

  /** The graph with its strip, as a file. */
  private async save(panel: Panel, kind: "png" | "svg"): Promise<void> {
    const [width, height] = [1200, 560];
    const title = `${panel.figure.title}: ${plain(this.connection.server)} and ${plain(this.connection.client)}`;
    const whole = (pen: Pen): void => {
      pen.text(14, 18, title, this.theme.text, "left", 15);
      let x = 14;
      for (const series of [...panel.series, ...panel.over].filter((each) => !panel.hidden.has(each.name))) {
        pen.rect(x, 34, 10, 10, this.theme.ink[series.ink] ?? this.theme.text);
        pen.text(x + 15, 39, series.name, this.theme.faint, "left", 12);
        x += 30 + series.name.length * 7;
      }
      const frame = { ...framed(width, height - STRIP_TALL), top: 78 };
      this.drawPanel(pen, panel, frame, true);
      const under = { ...framed(width, height), top: height - STRIP_TALL + 4 };
      this.drawStrip(pen, under);
    };
    let blob: Blob | null;
    if (kind === "svg") {
      const pen = new SvgPen(width, height, this.theme.ground);
      whole(pen);
      blob = new Blob([pen.done(title)], { type: "image/svg+xml" });
    } else {
      const canvas = el("canvas");
      [canvas.width, canvas.height] = [width * 2, height * 2];
      const context = canvas.getContext("2d");
      if (!context) return;
      context.scale(2, 2);
      context.font = FONT;
      context.fillStyle = this.theme.ground;
      context.fillRect(0, 0, width, height);
      whole(new CanvasPen(context));
      blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    }
    if (!blob) return;
    const link = el("a", { href: URL.createObjectURL(blob), download: `tcpwhy-${this.connection.id}-${panel.figure.id}.${kind}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}

export function framed(width: number, height: number): Frame {
  return { width, height, left: 74, right: 14, top: 24, bottom: 24 };
}

function summary(held: { letter: string; from: number; to: number }[], states: Map<string, StateWords>, side: number): string {
  const total = new Map<string, number>();
  for (const piece of held) {
    const name = states.get(piece.letter)?.bar[side] ?? "not decided";
    total.set(name, (total.get(name) ?? 0) + piece.to - piece.from);
  }
  const ranked = [...total].sort((a, b) => b[1] - a[1]).slice(0, 6);
  return ranked.map(([name, spent]) => `${name} ${time(spent)}`).join(", ");
}
