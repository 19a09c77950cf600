// What if: sliders over a measured transfer. The model repeats it in a worker and runs it with the changes; what comes of
// them is laid over the graphs while a slider moves. The range, which takes many runs, follows when the slider rests.

import type { Connection, Figure, Fitted as Begin, StateWords } from "./data.ts";
import { el, plain } from "./dom.ts";
import type { Overlay } from "./graph/overlay.ts";
import { type Fitted, type Knob, changesOf, knobsOf, placed } from "./knobs.ts";
import { Model } from "./reader.ts";
import { rate, time } from "./units.ts";

interface Account {
  time_ns: number;
  time_in_ns: Record<string, number>;
  rounds: number;
  bytes: number;
  resent_segments: number;
}

interface Repeated {
  sender: "client" | "server";
  seen: Account;
  replay: Account | null;
  repeats: boolean;
  why: string | null;
  cut_short: boolean;
  kernel: string | null;
  fitted: Fitted | null;
  proven: [number, number] | null;
  scenario: string;
}

interface Run {
  account: Account;
  unfinished: string[];
  picture: { figures: Figure[]; limits: [number, number, string][]; duration_ns: number; before: [number, number]; most_bps: number | null };
}

interface Ranged {
  account: Account;
  low_ns: number;
  high_ns: number;
  because: string[];
}

/** The range is asked for when a slider has rested so long. */
const REST_MS = 180;

export interface Asks {
  connection: Connection;
  fitted: Begin | undefined;
  side: number;
  states: Map<string, StateWords>;
  /** The capture's name in commands. */
  file: string;
  /** Tried when it opens. */
  tries: string[];
  overlay: (over: Overlay | null) => void;
  tell: (tries: string[]) => void;
}

export class WhatIf {
  readonly node: HTMLDetailsElement;
  private readonly body = el("div", { class: "whatif-body" }, el("p", { role: "status" }, "The model repeats the transfer …"));
  private readonly told = el("div", { class: "told", "aria-live": "polite" });
  private readonly head = el("p", { class: "answer" });
  private readonly spread = el("p", { class: "range" });
  private fast: Model | null = null;
  private slow: Model | null = null;
  private repeated: Repeated | null = null;
  private knobs: Knob[] = [];
  private others: string[] = [];
  private again = false;
  private busy = false;
  private waits = false;
  private asked = 0;
  private rest = 0;

  constructor(private readonly asks: Asks) {
    this.node = el("details", { class: "whatif" }, el("summary", {}, "What if? Move a setting, and see the transfer change"), this.body);
    this.node.addEventListener("toggle", () => this.node.open && void this.begin());
    if (asks.tries.length > 0) this.node.open = true;
  }

  /** Ends its workers. */
  end(): void {
    window.clearTimeout(this.rest);
    this.fast?.end();
    this.slow?.end();
  }

  private async begin(): Promise<void> {
    if (this.fast) return;
    const { connection, fitted } = this.asks;
    if (fitted?.fit === undefined) {
      const why = fitted?.unfit ? `The model cannot repeat this transfer: ${plain(fitted.unfit)}.` : "This page keeps too little of the transfer to repeat it.";
      this.body.replaceChildren(el("p", {}, `${why} The command reads the capture: tcpwhy whatif FILE --connection ${connection.id}.`));
      return;
    }
    const measured = fitted.fit;
    this.fast = new Model();
    this.slow = new Model();
    try {
      const [repeated] = await Promise.all([this.fast.call<Repeated>("study", measured), this.slow.call<Repeated>("study", measured)]);
      this.repeated = repeated;
      this.show(repeated);
    } catch (error) {
      this.body.replaceChildren(el("p", { class: "wrong" }, error instanceof Error ? error.message : String(error)));
    }
  }

  private show(repeated: Repeated): void {
    const { seen, replay, why, fitted } = repeated;
    if (!replay || !repeated.repeats || !fitted) {
      const off = replay ? ` It says ${time(replay.time_ns)} where the capture has ${time(seen.time_ns)}.` : "";
      this.body.replaceChildren(
        el("p", {}, `The model does not repeat this transfer.${off} ${sentence(why ?? "nothing tells why")} What it would say of changes proves nothing, so there are no sliders here. Play, below, has a transfer of its own.`),
      );
      return;
    }
    this.knobs = knobsOf(fitted, repeated.sender);
    this.others = placed(this.knobs, this.asks.tries);
    this.again = this.others.includes("again");
    this.others = this.others.filter((each) => each !== "again");
    this.fill(repeated, seen, replay);
    this.change();
  }

  private fill(repeated: Repeated, seen: Account, replay: Account): void {
    // Cut, not rounded: as the command says it.
    const off = Math.trunc(((replay.time_ns - seen.time_ns) * 1000) / Math.max(1, seen.time_ns)) / 10;
    const exact = `Unchanged, the model says ${time(replay.time_ns)} in ${rounds(replay.rounds)}; the capture has ${time(seen.time_ns)} in ${rounds(seen.rounds)} (${signed(off)} %). ${repeated.kernel ? `It runs Linux ${repeated.kernel} as the ${repeated.sender}.` : ""}`;
    const rows = this.knobs.map((knob) => this.row(knob));
    const reuse = el("input", { type: "checkbox", id: "whatif-reuse", onchange: () => this.reuse(reuse.checked) });
    reuse.checked = this.again;
    const back = el("button", { type: "button", class: "quiet", onclick: () => this.reset() }, "reset");
    this.body.replaceChildren(
      el("p", { class: "hint" }, `${exact} Times count from the handshake to the last ACK.`),
      el(
        "div",
        { class: "play-parts" },
        el("div", { class: "knobs" }, ...rows, el("div", { class: "knob" }, el("label", { for: "whatif-reuse" }, "reuse"), el("span", {}, reuse, " the open connection"), back)),
        el("div", { class: "played" }, this.told, this.spread, this.commands()),
      ),
    );
  }

  private row(knob: Knob): HTMLElement {
    const id = `whatif-${knob.id}`;
    const output = el("output", { for: id });
    const slider = el("input", { type: "range", id, min: "0", max: String(knob.places.length - 1) });
    const put = (): void => {
      slider.value = String(knob.at);
      const place = knob.places[knob.at];
      output.textContent = place.label;
      output.className = knob.at === knob.home ? "" : "moved";
      slider.setAttribute("aria-valuetext", knob.at === knob.home && knob.home > 0 ? `${place.label}, as it was` : place.label);
    };
    slider.addEventListener("input", () => {
      knob.at = Number(slider.value);
      put();
      this.change();
    });
    slider.addEventListener("put", put);
    put();
    return el("div", { class: "knob" }, el("label", { for: id }, knob.label), slider, output);
  }

  private reset(): void {
    for (const knob of this.knobs) knob.at = knob.home;
    this.others = [];
    this.reuse(false);
  }

  private reuse(again: boolean): void {
    this.again = again;
    const box = this.node.querySelector<HTMLInputElement>("#whatif-reuse");
    if (box) box.checked = again;
    for (const slider of this.node.querySelectorAll<HTMLInputElement>("input[type=range]")) {
      slider.dispatchEvent(new Event("put"));
      slider.disabled = again;
    }
    this.change();
  }

  private question(): { set?: string[]; again?: boolean } {
    return this.again ? { again: true } : { set: [...changesOf(this.knobs), ...this.others] };
  }

  private change(): void {
    const { again, set } = this.question();
    this.asked += 1;
    this.spread.textContent = "";
    this.asks.tell(again ? ["again"] : (set ?? []));
    this.waits = true;
    void this.run();
    window.clearTimeout(this.rest);
    this.rest = window.setTimeout(() => void this.range(), REST_MS);
  }

  /** Runs the newest question; those that came while one was running are left out. */
  private async run(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    while (this.waits && this.fast) {
      this.waits = false;
      const question = this.question();
      if (!question.again && question.set?.length === 0) {
        this.asks.overlay(null);
        this.told.replaceChildren(el("p", { class: "hint" }, "Nothing is changed yet. What the model says of a change is laid over the graphs."));
        continue;
      }
      try {
        const run = await this.fast.call<Run>("ask", JSON.stringify(question));
        this.drawn(run);
      } catch (error) {
        this.asks.overlay(null);
        this.told.replaceChildren(el("p", {}, `No answer: ${plain(error instanceof Error ? error.message : String(error))}.`));
      }
    }
    this.busy = false;
  }

  private async range(): Promise<void> {
    const mine = this.asked;
    const question = this.question();
    if (!this.slow || (!question.again && question.set?.length === 0)) return;
    this.spread.textContent = "The range follows …";
    try {
      const range = await this.slow.call<Ranged>("ask", JSON.stringify({ ...question, range: true }));
      if (mine !== this.asked) return;
      // Where chance decides, the time is the middle of many throws; the picture is one of them.
      this.headline(range.account);
      const why = range.because.length > 0 ? ` The ends stand for: ${range.because.join("; ")}.` : "";
      this.spread.replaceChildren(`From ${time(range.low_ns)} to ${time(range.high_ns)}.${why}`);
    } catch (error) {
      if (mine === this.asked) this.spread.textContent = error instanceof Error ? plain(error.message) : String(error);
    }
  }

  private drawn(run: Run): void {
    const { seen, proven } = this.repeated as Repeated;
    const { picture, account } = run;
    this.asks.overlay({
      label: "what if",
      figures: picture.figures,
      pieces: picture.limits.map(([from, to, letter]) => ({ from, to, letter })),
      end: picture.duration_ns,
      before: picture.before,
      rule: proven ? { figure: "rate", name: "the path has shown", value: proven[0] } : null,
    });
    const lines: HTMLElement[] = [
      this.head,
      el("p", {}, `${rounds(account.rounds)} instead of ${seen.rounds}. Then: ${this.longest(account)}.${account.resent_segments > 0 ? ` ${account.resent_segments === 1 ? "1 retransmission" : `${account.resent_segments} retransmissions`}.` : ""}`),
    ];
    if (proven && picture.most_bps !== null && picture.most_bps > proven[0] * 1.02) {
      lines.push(el("p", { class: "beyond" }, `Beyond the proven path: up to ${rate(picture.most_bps)}, and the path has shown ${rate(proven[0])}. Above the dashed line in Throughput nothing is proven.`));
    }
    for (const each of run.unfinished) lines.push(el("p", { class: "beyond" }, `Not finished: ${plain(each)}.`));
    this.headline(account);
    this.told.replaceChildren(...lines);
    this.node.dispatchEvent(new CustomEvent("drawn"));
  }

  private headline(account: Account): void {
    const was = (this.repeated as Repeated).seen.time_ns;
    const now = account.time_ns;
    const part = Math.round((Math.abs(was - now) / Math.max(1, was)) * 100);
    const verdict = part === 0 ? "as long" : `${part} % ${now < was ? "less" : "more"}`;
    this.head.replaceChildren(el("strong", { class: "what-time" }, time(now)), ` instead of ${time(was)}: ${verdict}`);
  }

  /** The two states that hold the sender longest. */
  private longest(account: Account): string {
    const names = new Map([...this.asks.states.values()].map((state) => [state.name, state.bar[this.asks.side]]));
    const sorted = Object.entries(account.time_in_ns).sort((a, b) => b[1] - a[1]).slice(0, 2);
    return sorted.map(([state, ns]) => `${names.get(state) ?? state} ${Math.round((ns / Math.max(1, account.time_ns)) * 100)} %`).join(", ");
  }

  private commands(): HTMLElement {
    const { connection, file } = this.asks;
    const of = `${quoted(plain(file))} --connection ${connection.id}`;
    const set = (): string => [...changesOf(this.knobs), ...this.others].map((each) => ` --set ${quoted(each)}`).join("");
    const whatif = (): string => `tcpwhy whatif ${of}${this.again ? "" : set()}`;
    const lab = (): string => `tcpwhy whatif ${of} --scenario > transfer.toml; tcpwhy lab run transfer.toml${this.again ? " --set application.times=2" : set()}`;
    const line = el("code", { class: "command", hidden: true });
    const copy = (label: string, text: () => string): HTMLElement =>
      el(
        "button",
        {
          type: "button",
          class: "quiet",
          onclick: () => {
            line.hidden = false;
            line.textContent = text();
            void navigator.clipboard?.writeText(line.textContent).catch(() => undefined);
          },
        },
        label,
      );
    return el("div", { class: "copies" }, copy("Copy the whatif command", whatif), " ", copy("Copy the lab commands", lab), line);
  }
}

function rounds(count: number): string {
  return count === 1 ? "1 round" : `${count} rounds`;
}

function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
}

function sentence(text: string): string {
  const said = plain(text);
  return said === "" ? "" : `${said[0].toUpperCase()}${said.slice(1)}.`;
}

/** As one word of a shell. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}
