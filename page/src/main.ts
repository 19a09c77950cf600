// The page: shows the report in its file, and explains captures that are dropped on it.

import { type Theme, theme } from "./colors.ts";
import { type Shown, type StateWords, checked, embedded } from "./data.ts";
import { el, plain } from "./dom.ts";
import { firstView } from "./first.ts";
import { Stack } from "./graph/stack.ts";
import { type Place, read, write } from "./hash.ts";
import { helpDialog } from "./help.ts";
import { explain } from "./reader.ts";
import { playground } from "./play.ts";
import { ceilings, roundsTable } from "./rounds.ts";
import { Table } from "./table.ts";

const app = document.getElementById("app") as HTMLElement;
const dark = window.matchMedia("(prefers-color-scheme: dark)");

class Page {
  private shown: Shown | null = null;
  private states = new Map<string, StateWords>();
  private index = 0;
  private side = 1;
  private stack: Stack | null = null;
  private table: Table | null = null;
  private chosenTheme: "light" | "dark" | null = null;
  private readonly main = el("main", { id: "main" });
  private readonly status = el("div", { class: "status", role: "status" });
  private readonly help = helpDialog();
  private readonly play = playground();
  private readonly picker = el("input", { type: "file", class: "hidden", "aria-label": "Capture to explain", onchange: () => this.picked() });

  constructor() {
    const policy = document.querySelector("meta[http-equiv]")?.getAttribute("content") ?? "";
    app.replaceChildren(
      el(
        "header",
        {},
        el("a", { class: "skip", href: "#main" }, "To the answer"),
        el("span", { class: "brand" }, "tcpwhy"),
        el("button", { type: "button", onclick: () => this.picker.click() }, "Open a capture …"),
        this.picker,
        el("button", { type: "button", class: "quiet", onclick: () => this.switchTheme(), "aria-label": "Light or dark" }, "◐"),
        el("button", { type: "button", class: "quiet", onclick: () => this.help.showModal(), "aria-label": "Keys and help" }, "?"),
      ),
      this.status,
      this.main,
      el("footer", {}, el("p", {}, "Nothing leaves this page. The browser enforces the policy that it carries: no address can be reached from here."), el("code", {}, policy)),
      this.help,
    );
    this.listen();
  }

  async open(): Promise<void> {
    try {
      const data = document.getElementById("data");
      const shown = await embedded(data?.textContent ?? "");
      data?.remove();
      if (shown) this.show(shown);
      else this.empty();
    } catch (error) {
      this.empty();
      this.say(error instanceof Error ? error.message : String(error), true);
    }
  }

  private theme(): Theme {
    return theme((this.chosenTheme ?? (dark.matches ? "dark" : "light")) === "dark");
  }

  private empty(): void {
    this.main.replaceChildren(
      el(
        "section",
        { class: "drop" },
        el("h1", {}, "Why was this transfer slow?"),
        el("p", {}, "Drop a capture here: pcap, pcapng (packed by gzip, too) or what tcpdump printed. It is explained in this browser; nothing is uploaded."),
      ),
      this.play,
    );
  }

  private show(shown: Shown): void {
    this.shown = shown;
    this.states = new Map(shown.states.map((state) => [state.letter, state]));
    const place = read(location.hash);
    const wanted = shown.screens.findIndex((screen) => screen.id === place.connection);
    this.index = wanted >= 0 ? wanted : (shown.order[0] ?? 0);
    document.title = `${shown.report.captures.map((capture) => plain(capture.source)).join(", ")} – tcpwhy`;
    this.render(place);
  }

  /** Everything anew, for another report, connection or colour. */
  private render(place: Place = {}): void {
    const { shown } = this;
    if (!shown) return;
    const screen = shown.screens[this.index];
    const connection = shown.report.connections[this.index];
    this.table = null;
    this.stack = null;
    if (!screen || !connection) {
      this.main.replaceChildren(el("p", { class: "answer" }, "There is no connection in this report."), this.trust(shown));
      return;
    }
    const current = this.theme();
    this.side = place.side ?? screen.main ?? 1;
    const parts: HTMLElement[] = [firstView(screen, connection, this.states, current, (from, to) => this.jump(from, to))];
    if (shown.screens.length > 1) {
      this.table = new Table(shown, this.states, current, (index) => this.choose(index), this.index);
    }
    parts.push(this.graphs(place));
    if (this.table) parts.push(this.table.node);
    parts.push(this.play, this.trust(shown));
    this.main.replaceChildren(...parts);
    (this.stack as Stack | null)?.draw();
  }

  private graphs(place: Place): HTMLElement {
    const { shown } = this;
    const section = el("section", { class: "graphs", "aria-label": "Graphs" });
    if (!shown) return section;
    const connection = shown.report.connections[this.index];
    const pictures = shown.pictures[String(connection.id)];
    const sides = [0, 1].filter((side) => pictures?.[side]);
    if (!sides.includes(this.side)) this.side = sides[0] ?? this.side;
    const figures = pictures?.[this.side];
    if (!figures) {
      const text = shown.screens[this.index].main === null ? "No data passed: there is nothing to draw." : `This file holds graphs of the connections that waited longest. For this one: tcpwhy FILE --connection ${connection.id} --html FILE`;
      section.append(el("h2", {}, "Graphs"), el("p", {}, text));
      return section;
    }
    const names = ["client to server", "server to client"];
    const tabs = sides.map((side) => el("button", { type: "button", class: "tab", "aria-pressed": String(side === this.side), onclick: () => this.turn(side) }, names[side]));
    const tell = (): void => this.tellPlace();
    const stack = new Stack(figures, connection, this.side, this.states, this.theme(), tell);
    this.stack = stack;
    const button = (label: string, text: string, run: () => void) => el("button", { type: "button", class: "quiet", "aria-label": label, title: label, onclick: run }, text);
    section.append(
      el(
        "div",
        { class: "panel-head bar-head" },
        el("h2", {}, "Graphs"),
        el("div", { class: "tabs" }, ...tabs),
        el("div", { class: "saves" }, button("Earlier", "←", () => stack.pan(-0.25)), button("Later", "→", () => stack.pan(0.25)), button("Zoom in", "+", () => stack.zoom(0.6)), button("Zoom out", "−", () => stack.zoom(1 / 0.6)), button("all of the time", "all", () => stack.whole())),
      ),
      el("p", { class: "hint" }, "Drag over a graph to zoom; W A S D, or Ctrl and the wheel; double click for all. ? shows the keys."),
      stack.node,
    );
    const direction = connection.directions[this.side];
    const more = [direction && roundsTable(direction, this.side, this.states, (from, to) => this.jump(from, to)), ceilings(connection, this.side, this.theme())];
    section.append(...more.filter((node): node is HTMLElement => Boolean(node)));
    if (place.from !== undefined && place.to !== undefined) stack.show(place.from, place.to, false);
    return section;
  }

  private trust(shown: Shown): HTMLElement {
    const lines: HTMLElement[] = [];
    for (const capture of shown.report.captures) {
      lines.push(el("li", {}, `${plain(capture.source)}: ${capture.packets} packets, ${capture.tcp_segments} TCP segments. ${capture.error ? `Read in part: ${plain(capture.error)}.` : ""}`));
      for (const remark of capture.quality) lines.push(el("li", {}, `${remark.count > 0 ? `${remark.count} ` : ""}${plain(remark.note)}`));
      for (const skip of capture.skipped) lines.push(el("li", {}, `Passed over: ${skip.count} ${plain(skip.reason)}`));
    }
    return el("section", { class: "captures", "aria-label": "What was captured" }, el("h2", {}, "What was captured"), el("ul", {}, ...lines), el("button", { type: "button", onclick: () => this.saveJson(shown) }, "Save the report as JSON"));
  }

  private saveJson(shown: Shown): void {
    const blob = new Blob([JSON.stringify(shown.report), "\n"], { type: "application/json" });
    const link = el("a", { href: URL.createObjectURL(blob), download: "tcpwhy.json" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  private choose(index: number): void {
    this.index = index;
    this.render();
    this.tellPlace();
    window.scrollTo({ top: 0 });
  }

  private turn(side: number): void {
    const [from, to] = this.stack?.window() ?? [];
    this.render({ side, from, to });
    this.tellPlace();
  }

  private jump(from: number, to: number): void {
    this.stack?.jump(from, to);
  }

  private tellPlace(): void {
    const { shown, stack } = this;
    if (!shown) return;
    const [from, to] = stack && !stack.isWhole() ? stack.window() : [];
    history.replaceState(null, "", write({ connection: shown.screens[this.index].id, side: this.side, from, to }));
  }

  private switchTheme(): void {
    const now = this.chosenTheme ?? (dark.matches ? "dark" : "light");
    this.chosenTheme = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = this.chosenTheme;
    this.repaint();
  }

  /** In other colours, at the same place. */
  private repaint(): void {
    const [from, to] = this.stack?.window() ?? [];
    this.render({ side: this.side, from, to });
  }

  private picked(): void {
    const file = this.picker.files?.[0];
    if (file) void this.read(file);
    this.picker.value = "";
  }

  private async read(file: File): Promise<void> {
    const name = plain(file.name);
    const run = explain(file, (share) => {
      bar.value = share;
    });
    const bar = el("progress", { max: "1", "aria-label": "Read so far" });
    this.status.className = "status";
    this.status.replaceChildren(`Reading ${name} … `, bar, el("button", { type: "button", class: "quiet", onclick: () => run.cancel() }, "Cancel"));
    try {
      const text = await run.done;
      if (text === null) {
        this.say(`${name} was not read: you cancelled.`);
        return;
      }
      const shown = checked(JSON.parse(text));
      history.replaceState(null, "", location.pathname);
      this.status.replaceChildren();
      this.show(shown);
      window.scrollTo({ top: 0 });
    } catch (error) {
      this.say(`${name} cannot be explained. ${error instanceof Error ? error.message : String(error)}`, true);
    }
  }

  private say(text: string, isWrong = false): void {
    this.status.className = isWrong ? "status wrong" : "status";
    this.status.replaceChildren(text);
  }

  private listen(): void {
    dark.addEventListener("change", () => this.chosenTheme ?? this.repaint());
    window.addEventListener("resize", () => this.stack?.ask());
    window.addEventListener("hashchange", () => this.shown && this.show(this.shown));
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (file) void this.read(file);
    });
    document.addEventListener("keydown", (event) => this.key(event));
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || target.tagName === "INPUT" || this.help.open) return;
    const { stack } = this;
    const keys: Record<string, () => void> = {
      w: () => stack?.zoom(0.7),
      "+": () => stack?.zoom(0.7),
      s: () => stack?.zoom(1 / 0.7),
      "-": () => stack?.zoom(1 / 0.7),
      a: () => stack?.pan(-0.2),
      d: () => stack?.pan(0.2),
      "0": () => stack?.whole(),
      "?": () => this.help.showModal(),
      t: () => this.switchTheme(),
      o: () => this.picker.click(),
      x: () => this.turn(1 - this.side),
      j: () => this.step(1),
      k: () => this.step(-1),
    };
    const run = keys[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  }

  /** To the next connection of the table. */
  private step(by: number): void {
    const { shown } = this;
    if (!shown || shown.order.length < 2) return;
    const at = shown.order.indexOf(this.index) + by;
    if (at >= 0 && at < shown.order.length) this.choose(shown.order[at]);
  }
}

void new Page().open();
