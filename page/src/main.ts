// The page: shows the report in its file, and explains captures that are dropped on it.

import { type Theme, theme } from "./colors.ts";
import { type Shown, type StateWords, checked, embedded, embeddedLater, isWhole } from "./data.ts";
import { el, plain } from "./dom.ts";
import { firstView } from "./first.ts";
import { Stack } from "./graph/stack.ts";
import { type Place, read, write } from "./hash.ts";
import { helpDialog } from "./help.ts";
import { explain, hidden, hiddenData } from "./reader.ts";
import { playground } from "./play.ts";
import { ceilings, roundsTable } from "./rounds.ts";
import { saveJson, savePage } from "./save.ts";
import { Table } from "./table.ts";
import { beside, besideOf } from "./two.ts";
import { WhatIf } from "./whatif.ts";

const app = document.getElementById("app") as HTMLElement;
const dark = window.matchMedia("(prefers-color-scheme: dark)");

class Page {
  private shown: Shown | null = null;
  private states = new Map<string, StateWords>();
  private index = 0;
  private side = 1;
  private stack: Stack | null = null;
  private table: Table | null = null;
  private whatif: WhatIf | null = null;
  private tries: string[] = [];
  /** It was explained here, not by the command. */
  private isDropped = false;
  /** Done when all of the report is unpacked. */
  private later: Promise<void> = Promise.resolve();
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
      if (!shown) return this.empty();
      this.show(shown);
      // The first picture is on the screen before the rest is unpacked.
      this.later = new Promise((done) => requestAnimationFrame(() => setTimeout(() => void this.refine(shown).then(done), 0)));
    } catch (error) {
      this.empty();
      this.say(error instanceof Error ? error.message : String(error), true);
    }
  }

  /** Replaces the first level of the graphs by all their marks. */
  private async refine(shown: Shown): Promise<void> {
    const block = document.getElementById("series");
    try {
      const later = await embeddedLater(block?.textContent ?? "");
      block?.remove();
      if (!later) return;
      const isWaited = !isWhole(shown.report.connections[this.index]);
      for (const [at, connection] of later.connections ?? []) shown.report.connections[at] = connection;
      Object.assign(shown.pictures, later.pictures);
      if (this.shown !== shown) return;
      if (isWaited) return this.render(read(location.hash));
      const connection = shown.report.connections[this.index];
      const figures = connection && later.pictures[String(connection.id)]?.[this.side];
      if (figures) this.stack?.refine(figures);
    } catch (error) {
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
        el("p", {}, "Drop a capture here: pcap or pcapng (packed by gzip, zstd or LZ4, too) or what tcpdump printed. It is explained in this browser; nothing is uploaded."),
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
    place.tries ??= shown.tries;
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
    this.whatif?.end();
    this.whatif = null;
    const texts = (shown.texts ?? []).map(({ title, text }) => el("section", { class: "captures", "aria-label": plain(title) }, el("h1", {}, plain(title)), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What was found" }, el("pre", {}, plain(text)))));
    if (!screen || !connection) {
      this.main.replaceChildren(...(texts.length > 0 ? texts : [el("p", { class: "answer" }, "There is no connection in this report."), this.trust(shown)]), this.play);
      return;
    }
    if (!isWhole(connection)) {
      this.main.replaceChildren(el("p", { class: "hint", role: "status" }, "Unpacking the report …"));
      return;
    }
    const current = this.theme();
    this.side = place.side ?? screen.main ?? 1;
    this.tries = place.tries ?? [];
    const parts: HTMLElement[] = [firstView(screen, connection, this.states, current, (from, to) => this.jump(from, to))];
    if (shown.screens.length > 1) {
      this.table = new Table(shown, this.states, current, (index) => this.choose(index), this.index);
    }
    parts.push(this.graphs(place));
    if (this.table) parts.push(this.table.node);
    parts.push(this.play, ...texts, this.trust(shown));
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
        besideOf(shown, this.index, (index) => this.beside(index), (file) => void this.besideFile(file)),
        el("div", { class: "saves" }, button("Earlier", "←", () => stack.pan(-0.25)), button("Later", "→", () => stack.pan(0.25)), button("Zoom in", "+", () => stack.zoom(0.6)), button("Zoom out", "−", () => stack.zoom(1 / 0.6)), button("all of the time", "all", () => stack.whole())),
      ),
      el("p", { class: "hint" }, "Drag over a graph to zoom; W A S D, or Ctrl and the wheel; double click for all. ? shows the keys."),
      stack.node,
    );
    const direction = connection.directions[this.side];
    if (this.side === (shown.screens[this.index].main ?? this.side)) {
      this.whatif = new WhatIf({
        connection,
        fitted: shown.fits?.[String(connection.id)],
        side: this.side,
        states: this.states,
        file: shown.report.captures[0]?.source ?? "FILE",
        tries: this.tries,
        overlay: (over) => stack.overlay(over),
        tell: (tries) => {
          this.tries = tries;
          this.tellPlace();
        },
      });
      section.insertBefore(this.whatif.node, stack.node);
    }
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
    return el("section", { class: "captures", "aria-label": "What was captured" }, el("h2", {}, "What was captured"), el("ul", {}, ...lines), 
      el(
        "div",
        { class: "panel-head" },
        el("button", { type: "button", onclick: () => void this.later.then(() => saveJson(shown)) }, "Save the report as JSON"),
        el("button", { type: "button", onclick: () => void this.later.then(() => savePage(shown)) }, "Save this page"),
        shown.texts?.length ? el("span", { class: "hint" }, "What a host printed has addresses: it is not saved without them.") : el("button", { type: "button", onclick: () => void this.later.then(() => this.saveHidden(shown)) }, "Save without addresses"),
      ),
    );
  }

  private async saveHidden(shown: Shown): Promise<void> {
    try {
      await savePage(this.isDropped ? checked(JSON.parse(await hidden())) : await hiddenData(shown));
    } catch (error) {
      this.say(`It cannot be saved without addresses. ${error instanceof Error ? error.message : String(error)}`, true);
    }
  }

  /** Lays another connection over the graphs; null takes it away. */
  private beside(index: number | null): void {
    if (!this.shown || !this.stack) return;
    this.stack.overlay(index === null ? null : beside(this.shown, index));
  }

  private async besideFile(file: File): Promise<void> {
    const other = await this.explained(file, false);
    if (!other || !this.stack) return;
    const over = other.order.length > 0 ? beside(other, other.order[0]) : null;
    if (over) this.stack.overlay(over);
    this.say(over ? `${plain(file.name)} lies over the graphs, at the same start.` : `${plain(file.name)} has no transfer to lay beside.`, !over);
  }

  private choose(index: number): void {
    this.index = index;
    this.render();
    this.tellPlace();
    window.scrollTo({ top: 0 });
  }

  private turn(side: number): void {
    const [from, to] = this.stack?.window() ?? [];
    this.render({ side, from, to, tries: this.tries });
    this.tellPlace();
  }

  private jump(from: number, to: number): void {
    this.stack?.jump(from, to);
  }

  private tellPlace(): void {
    const { shown, stack } = this;
    if (!shown) return;
    const [from, to] = stack && !stack.isWhole() ? stack.window() : [];
    history.replaceState(null, "", write({ connection: shown.screens[this.index].id, side: this.side, from, to, tries: this.tries }));
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
    this.render({ side: this.side, from, to, tries: this.tries });
  }

  private picked(): void {
    const file = this.picker.files?.[0];
    if (file) void this.read(file);
    this.picker.value = "";
  }

  private async read(file: File): Promise<void> {
    const shown = await this.explained(file, true);
    if (!shown) return;
    history.replaceState(null, "", location.pathname);
    this.isDropped = true;
    this.show(shown);
    window.scrollTo({ top: 0 });
  }

  /** What a file shows; null if it was cancelled or cannot be explained, which is said. */
  private async explained(file: File, keeps: boolean): Promise<Shown | null> {
    const name = plain(file.name);
    const bar = el("progress", { max: "1", "aria-label": "Read so far" });
    const run = explain(file, keeps, (share) => {
      bar.value = share;
    });
    this.status.className = "status";
    this.status.replaceChildren(`Reading ${name} … `, bar, el("button", { type: "button", class: "quiet", onclick: () => run.cancel() }, "Cancel"));
    try {
      const text = await run.done;
      if (text === null) {
        this.say(`${name} was not read: you cancelled.`);
        return null;
      }
      const shown = checked(JSON.parse(text));
      this.status.replaceChildren();
      return shown;
    } catch (error) {
      this.say(`${name} cannot be explained. ${error instanceof Error ? error.message : String(error)}`, true);
      return null;
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
