// The first view: the answer in a sentence, what would be faster, where the time went.

import type { Theme } from "./colors.ts";
import type { Connection, Finding, Screen, StateWords } from "./data.ts";
import { el, plain, tied } from "./dom.ts";
import { slices } from "./graph/strip.ts";

export function firstView(screen: Screen, connection: Connection, states: Map<string, StateWords>, theme: Theme, jump: (from: number, to: number) => void): HTMLElement {
  const failed = screen.failed !== null;
  const answer = el("p", { class: failed ? "answer failed" : "answer" }, failed ? el("strong", {}, "Failed: ") : null, tied(connection.answer), failed ? el("span", { class: "code" }, ` [${screen.failed}]`) : null);
  return el(
    "section",
    { class: "first", "aria-label": "The answer" },
    el("h1", {}, plain(screen.who), " ", el("span", { class: "what" }, plain(screen.what))),
    answer,
    failed ? advice(screen) : changes(screen),
    bars(screen, states, theme),
    strip(screen, connection, states, theme),
    el("p", { class: "trust" }, `${screen.trust}. ${sentence(plain(connection.vantage_evidence))}`),
    findings(connection, jump),
  );
}

function sentence(text: string): string {
  return text === "" ? "" : `${capital(text)}.`;
}

function capital(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

function changes(screen: Screen): HTMLElement | null {
  if (screen.changes.length === 0) return null;
  const rows = screen.changes.map((change) =>
    el(
      "tr",
      {},
      el("td", {}, plain(change.label), change.command ? el("code", { class: "command" }, plain(change.command)) : null),
      el("td", { class: "number" }, change.then),
      el("td", { class: "number gain" }, change.gain),
      el("td", { class: "code" }, change.code),
    ),
  );
  const head = el("tr", {}, el("th", { scope: "col" }, "Would be faster"), el("th", { scope: "col", class: "number" }, `now ${screen.now}`), el("th", { scope: "col", class: "number" }, "gain"), el("th", { scope: "col", class: "code" }, "finding"));
  return el("div", {}, el("table", { class: "changes" }, el("thead", {}, head), el("tbody", {}, ...rows)), screen.below ? el("p", {}, screen.below) : null);
}

function advice(screen: Screen): HTMLElement | null {
  if (screen.advice.length === 0) return null;
  const items = screen.advice.map((each) => el("li", {}, `On the ${plain(each.who)}: ${plain(each.what)}.`, each.command ? el("code", { class: "command" }, plain(each.command)) : null));
  return el("ul", { class: "advice" }, ...items);
}

/** At most six bars; of less than one in a hundred nothing is said. */
function bars(screen: Screen, states: Map<string, StateWords>, theme: Theme): HTMLElement | null {
  const whole = screen.bars.reduce((sum, bar) => sum + bar.ns, 0);
  const shown = screen.bars.filter((bar) => bar.ns * 100 >= whole).slice(0, 6);
  if (shown.length === 0) return null;
  const rows = shown.map((bar) => {
    const fill = el("span", { class: "fill" });
    fill.style.width = `${((bar.ns / Math.max(1, screen.bars[0].ns)) * 100).toFixed(1)}%`;
    fill.style.background = theme.family[states.get(bar.letter)?.family ?? "unknown"];
    return el("tr", {}, el("th", { scope: "row" }, plain(bar.name)), el("td", { class: "number" }, bar.time), el("td", { class: "number" }, bar.share), el("td", { class: "bar" }, fill));
  });
  return el("table", { class: "bars" }, el("caption", {}, `Where ${screen.took} went`), el("tbody", {}, ...rows));
}

/** What held the sender, from the first packet to the last. */
function strip(screen: Screen, connection: Connection, states: Map<string, StateWords>, theme: Theme): HTMLElement | null {
  const letters = screen.main === null ? "" : (connection.directions[screen.main]?.strip ?? "");
  if (letters === "" || screen.bars.length === 0) return null;
  const label = `What held the sender over ${screen.took}: ${screen.bars.map((bar) => `${plain(bar.name)} ${bar.share}`).join(", ")}`;
  return el("div", { class: "course" }, slices(letters, label, states, theme), el("span", {}, "0"), el("span", {}, screen.took));
}

function findings(connection: Connection, jump: (from: number, to: number) => void): HTMLElement | null {
  if (connection.findings.length === 0) return null;
  const items = connection.findings.map((finding) => el("li", {}, el("strong", {}, capital(plain(finding.title))), el("span", { class: "code" }, ` [${finding.code}]`), el("p", {}, capital(plain(finding.why)), finding.not ? ` ${sentence(plain(finding.not))}` : ""), evidence(finding, jump)));
  return el("details", { class: "findings" }, el("summary", {}, `What was found (${connection.findings.length})`), el("ol", {}, ...items));
}

function evidence(finding: Finding, jump: (from: number, to: number) => void): HTMLElement | null {
  if (finding.evidence.length === 0) return null;
  const items = finding.evidence.map((piece) =>
    el("li", {}, el("button", { type: "button", class: "link", onclick: () => jump(piece.from_ns, piece.to_ns) }, "show"), ` ${plain(piece.text)} `, piece.filter ? el("code", {}, plain(piece.filter)) : null),
  );
  return el("ul", {}, ...items);
}
