// The table of connections: what did not work first, then the longest wait. It can be sorted and filtered.

import type { Shown, StateWords } from "./data.ts";
import type { Theme } from "./colors.ts";
import { el, plain } from "./dom.ts";
import { slices } from "./graph/strip.ts";

/** Rows that are made at once; more come when they are asked for. */
const AT_ONCE = 200;

type Key = "worst" | "id" | "peer" | "what" | "took" | "why" | "gain";

export class Table {
  readonly node: HTMLElement;
  private readonly body = el("tbody");
  private readonly count = el("p", { class: "count", "aria-live": "polite" });
  private key: Key = "worst";
  private down = false;
  private words = "";
  private limit = AT_ONCE;
  private readonly bytes: number[];
  private readonly gains: number[];

  constructor(
    private readonly shown: Shown,
    private readonly states: Map<string, StateWords>,
    private readonly theme: Theme,
    private readonly choose: (index: number) => void,
    private chosen: number,
  ) {
    this.bytes = shown.report.connections.map((each) => each.directions.reduce((sum, way) => sum + (way?.bytes ?? 0), 0));
    this.gains = shown.screens.map((screen) => Math.max(0, ...screen.changes.map((change) => change.saves?.[1] ?? 0)));
    const filter = el("input", { type: "search", placeholder: "address, reason, failed …", "aria-label": "Show only connections with this word", oninput: (event) => this.filter((event.target as HTMLInputElement).value) });
    const columns: [Key, string][] = [["id", "#"], ["peer", "peer"], ["what", "what"], ["took", "took"], ["why", "why"], ["gain", "gain"]];
    const heads = columns.map(([key, name]) =>
      el("th", { scope: "col", class: key === "took" || key === "gain" ? "number" : key }, el("button", { type: "button", class: "sort", onclick: () => this.sort(key) }, name)),
    );
    heads.splice(5, 0, el("th", { scope: "col", class: "slices" }, "what held it"));
    this.node = el(
      "section",
      { class: "overview", "aria-label": "Connections" },
      el("div", { class: "panel-head" }, el("h2", {}, plain(shown.head)), filter),
      el("div", { class: "scroll" }, el("table", { class: "connections" }, el("thead", {}, el("tr", {}, ...heads)), this.body)),
      this.count,
    );
    this.fill();
  }

  mark(index: number): void {
    this.chosen = index;
    for (const row of this.body.rows) row.classList.toggle("chosen", row.dataset.index === String(index));
  }

  private filter(words: string): void {
    this.words = words.trim().toLowerCase();
    this.limit = AT_ONCE;
    this.fill();
  }

  private sort(key: Key): void {
    this.down = this.key === key ? !this.down : key === "took" || key === "gain" || key === "what";
    this.key = key;
    this.fill();
  }

  private indices(): number[] {
    const { screens, report } = this.shown;
    const matches = (index: number): boolean => {
      const { row, failed } = screens[index];
      const connection = report.connections[index];
      return `${connection.id} ${connection.client} ${connection.server} ${row.what} ${row.why} ${failed ? "failed" : ""}`.toLowerCase().includes(this.words);
    };
    const order = this.shown.order.filter((index) => index < screens.length && (this.words === "" || matches(index)));
    const value = (index: number): number | string => {
      const { row, id } = screens[index];
      if (this.key === "took") return row.took_ns;
      if (this.key === "gain") return this.gains[index];
      if (this.key === "what") return this.bytes[index];
      return this.key === "id" ? id : this.key === "peer" ? row.peer : row.why;
    };
    if (this.key === "worst") return order;
    const sign = this.down ? -1 : 1;
    return order
      .map((index) => ({ index, value: value(index) }))
      .sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : a.index - b.index))
      .map((each) => each.index);
  }

  private fill(): void {
    const order = this.indices();
    this.body.replaceChildren(...order.slice(0, this.limit).map((index) => this.row(index)));
    const left = order.length - Math.min(order.length, this.limit);
    this.count.replaceChildren(`${order.length} of ${this.shown.screens.length} connections. `);
    if (left > 0) {
      const more = (): void => {
        this.limit *= 4;
        this.fill();
      };
      this.count.append(el("button", { type: "button", class: "link", onclick: more }, `Show more (${left})`));
    }
  }

  private row(index: number): HTMLTableRowElement {
    const { row, id, failed } = this.shown.screens[index];
    const go = (): void => this.choose(index);
    const open = el("button", { type: "button", class: "link", onclick: go, "aria-label": `Show connection ${id}` }, failed ? `! ${id}` : String(id));
    const node = el(
      "tr",
      { class: failed ? "failed" : "" },
      el("td", {}, open),
      el("td", { class: "peer" }, plain(row.peer)),
      el("td", {}, plain(row.what)),
      el("td", { class: "number" }, row.took),
      el("td", { class: "why" }, plain(row.why)),
      el("td", { class: "slices" }, this.slices(index)),
      el("td", { class: "number" }, row.gain),
    );
    node.dataset.index = String(index);
    node.classList.toggle("chosen", index === this.chosen);
    return node;
  }

  /** The strip in small. */
  private slices(index: number): HTMLElement | null {
    const main = this.shown.screens[index].main;
    const strip = main === null ? "" : (this.shown.report.connections[index].directions[main]?.strip ?? "");
    if (strip === "") return null;
    return slices(strip, strip, this.states, this.theme);
  }
}
