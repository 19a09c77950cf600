// The model at play: a transfer without a capture, and what each setting does to it.

import { el } from "./dom.ts";
import { Model } from "./reader.ts";
import { bytes, rate, time } from "./units.ts";

interface Knob {
  id: string;
  label: string;
  /** Places of the slider. */
  values: number[];
  start: number;
  shown: (value: number) => string;
}

const KNOBS: Knob[] = [
  { id: "size", label: "size", values: [1, 4, 14, 32, 64, 128, 256, 512, 1024, 2048, 5120, 10240, 51200].map((kib) => kib * 1024), start: 7, shown: bytes },
  { id: "rtt", label: "round trip", values: [0.2, 0.5, 1, 2, 5, 7, 10, 20, 40, 60, 80, 100, 150, 200, 300, 600].map((ms) => ms * 1e6), start: 8, shown: time },
  { id: "rate", label: "link", values: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2500, 10000].map((mbit) => mbit * 1e6), start: 6, shown: rate },
  { id: "initcwnd", label: "initial window", values: [1, 2, 3, 4, 10, 20, 30, 44, 64, 100], start: 4, shown: (value) => `${value} segments` },
  { id: "loss", label: "loss", values: [0, 0.01, 0.1, 0.5, 1, 2, 5], start: 0, shown: (value) => (value === 0 ? "none" : `${value} %`) },
];

const CONTROLLERS = ["cubic", "reno", "bbr"];

/** Beside Linux: what the books teach, with none of what kernels add. */
const BOOK = "textbook-reno";

/** The table of sizes against round trips. */
const SIZES = [4, 14, 64, 256, 1024, 5120, 51_200].map((kib) => kib * 1024);
const TRIPS = [2, 10, 40, 100, 200].map((ms) => ms * 1e6);

interface Run {
  time_ns: number;
  rounds: number;
  resent_bytes: number;
  waits_ns: Record<string, number>;
  size_over_rate_ns: number | null;
}

export function question(values: Record<string, number>, controller: string): string {
  const loss = values.loss > 0 ? `\nloss = "${values.loss}%"` : "";
  const scenario = `[server.route]\ninitcwnd = ${values.initcwnd}\ncongctl = "${controller}"\n[path]\nrtt = "${values.rtt}ns"\nrate = "${values.rate}bit"${loss}\n[application]\ndownload = "${values.size}B"\n`;
  return JSON.stringify({ scenario });
}

export function command(values: Record<string, number>, controller: string): string {
  const loss = values.loss > 0 ? ` --set path.loss=${values.loss}%` : "";
  return `tcpwhy predict --size ${values.size}B --rtt ${values.rtt / 1e6}ms --rate ${values.rate / 1e6}mbit --initcwnd ${values.initcwnd}${loss} --set server.route.congctl=${controller}`;
}

export function playground(): HTMLElement {
  const values = Object.fromEntries(KNOBS.map((knob) => [knob.id, knob.values[knob.start]]));
  let controller = CONTROLLERS[0];
  let model: Model | null = null;
  let asked = 0;
  const answer = el("div", { class: "played", "aria-live": "polite" });
  const grid = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Sizes against round trips" });
  const line = el("code", { class: "command" });
  const ask = async (): Promise<void> => {
    asked += 1;
    const mine = asked;
    line.textContent = command(values, controller);
    model ??= new Model();
    const run = (more: Record<string, number>, by = controller): Promise<Run> => (model as Model).predict<Run>(question({ ...values, ...more }, by));
    try {
      const [own, book] = [await run({}), await run({}, BOOK)];
      if (mine !== asked) return;
      answer.replaceChildren(told(own), against(own, book));
      await fill(grid, run, () => mine === asked);
    } catch (error) {
      if (mine === asked) answer.replaceChildren(error instanceof Error ? error.message : String(error));
    }
  };
  const knobs = KNOBS.map((knob) => {
    const output = el("output", { for: `knob-${knob.id}` }, knob.shown(values[knob.id]));
    const slider = el("input", { type: "range", id: `knob-${knob.id}`, min: "0", max: String(knob.values.length - 1), value: String(knob.start) });
    slider.addEventListener("input", () => {
      values[knob.id] = knob.values[Number(slider.value)];
      output.textContent = knob.shown(values[knob.id]);
      slider.setAttribute("aria-valuetext", output.textContent);
      void ask();
    });
    return el("div", { class: "knob" }, el("label", { for: `knob-${knob.id}` }, knob.label), slider, output);
  });
  const choice = el("select", { id: "knob-controller" }, ...CONTROLLERS.map((name) => el("option", { value: name }, name)));
  choice.addEventListener("change", () => {
    controller = choice.value;
    void ask();
  });
  const node = el(
    "details",
    { class: "play" },
    el("summary", {}, "Play: what would TCP do?"),
    el("p", { class: "hint" }, "A model of Linux TCP runs in this page. Up to some megabytes, slow start and the round trip decide; only large files feel the link."),
    el("div", { class: "play-parts" }, el("div", { class: "knobs" }, ...knobs, el("div", { class: "knob" }, el("label", { for: "knob-controller" }, "controller"), choice)), answer),
    line,
    grid,
  );
  node.addEventListener("toggle", () => node.open && void ask());
  return node;
}

function told(run: Run): HTMLElement {
  const waits = Object.entries(run.waits_ns).sort((a, b) => b[1] - a[1]).slice(0, 4);
  const rows = waits.map(([name, spent]) => el("li", {}, `${name} ${time(spent)}`));
  const resent = run.resent_bytes > 0 ? `, ${bytes(run.resent_bytes)} retransmitted` : "";
  return el("div", {}, el("p", { class: "answer" }, `${time(run.time_ns)} in ${run.rounds} rounds${resent}`), el("ul", {}, ...rows));
}

/** Linux and the book side by side. */
function against(own: Run, book: Run): HTMLElement {
  const row = (name: string, run: Run): HTMLElement =>
    el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "number" }, time(run.time_ns)), el("td", { class: "number" }, String(run.rounds)), el("td", { class: "number" }, run.resent_bytes > 0 ? bytes(run.resent_bytes) : "none"));
  const heads = ["", "time", "rounds", "retransmitted"].map((name) => el("th", { scope: "col", class: "number" }, name));
  return el("table", { class: "against" }, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, row("Linux", own), row("textbook (Reno)", book)));
}

/** Times of all sizes over all round trips; where slow start and distance take more than half, the cell is marked. */
async function fill(grid: HTMLElement, run: (more: Record<string, number>) => Promise<Run>, isCurrent: () => boolean): Promise<void> {
  const heads = TRIPS.map((trip) => el("th", { scope: "col", class: "number" }, time(trip)));
  const body = el("tbody");
  const felt = new Set<number>();
  for (const size of SIZES) {
    const cells: HTMLElement[] = [];
    for (const rtt of TRIPS) {
      const one = await run({ size, rtt });
      if (!isCurrent()) return;
      const link = one.size_over_rate_ns ?? 0;
      const isLink = link * 2 > one.time_ns;
      if (!isLink) felt.add(size);
      cells.push(el("td", { class: isLink ? "number by-link" : "number by-trips", title: isLink ? "mostly the link" : "mostly round trips" }, `${time(one.time_ns)}${isLink ? " ▪" : ""}`));
    }
    body.append(el("tr", {}, el("th", { scope: "row", class: "number" }, bytes(size)), ...cells));
  }
  const most = Math.max(...felt);
  const said = felt.size === 0 ? "Everywhere here the link takes more than half of the time." : `Up to ${bytes(most)} there is a round trip here at which slow start and distance are what you feel; ▪ marks where the link takes more than half.`;
  grid.replaceChildren(el("table", { class: "sizes" }, el("caption", {}, "Sizes against round trips"), el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "number" }, "size"), ...heads)), body), el("p", { class: "hint" }, said));
}
