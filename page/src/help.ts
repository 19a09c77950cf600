// Keys and gestures.

import { el } from "./dom.ts";

const KEYS: [string, string][] = [
  ["W S, + -", "zoom in, zoom out"],
  ["A D", "earlier, later"],
  ["0", "the whole time"],
  ["drag", "zoom into a piece of time (with Shift: move)"],
  ["Ctrl and wheel", "zoom around the cursor"],
  ["J K", "next, previous connection"],
  ["X", "the other direction"],
  ["T", "light or dark"],
  ["O", "open a capture"],
  ["?", "this help"],
];

export function helpDialog(): HTMLDialogElement {
  const rows = KEYS.map(([keys, what]) => el("tr", {}, el("th", { scope: "row" }, el("kbd", {}, keys)), el("td", {}, what)));
  const dialog = el("dialog", { "aria-label": "Keys" });
  dialog.append(el("h2", {}, "Keys"), el("table", {}, el("tbody", {}, ...rows)), el("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  return dialog;
}
