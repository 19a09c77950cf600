// Two transfers: a second connection over the graphs of the first, at the same start.

import type { Shown } from "./data.ts";
import { el, plain } from "./dom.ts";
import type { Overlay } from "./graph/overlay.ts";
import { piecesOf } from "./graph/strip.ts";

/** A connection as it is laid over another; null if its graphs are not here. */
export function beside(shown: Shown, index: number): Overlay | null {
  const connection = shown.report.connections[index];
  const side = shown.screens[index]?.main ?? 1;
  const figures = connection && shown.pictures[String(connection.id)]?.[side];
  const direction = connection?.directions[side];
  if (!figures || !direction) return null;
  const states = new Map(shown.states.map((state) => [state.letter, state]));
  return {
    label: `#${connection.id} ${plain(shown.screens[index].row.peer)}`,
    figures,
    pieces: piecesOf(direction, connection.duration_ns, states),
    end: connection.duration_ns,
    before: [0, 0],
    rule: null,
  };
}

/** Chooses what is laid over the graphs: another connection of the report, or one of another file. */
export function besideOf(shown: Shown, index: number, choose: (index: number | null) => void, open: (file: File) => void): HTMLElement {
  const others = shown.order.filter((each) => each !== index && shown.pictures[String(shown.report.connections[each].id)]);
  const options = others.map((each) => el("option", { value: String(each) }, `#${shown.screens[each].id} ${plain(shown.screens[each].row.peer)}, ${plain(shown.screens[each].row.what)}`));
  const picker = el("input", { type: "file", class: "hidden", "aria-label": "Capture to lay beside" });
  picker.addEventListener("change", () => {
    const file = picker.files?.[0];
    if (file) open(file);
    picker.value = "";
  });
  const select = el("select", { "aria-label": "Lay another transfer over the graphs" }, el("option", { value: "" }, "beside it: nothing"), ...options, el("option", { value: "file" }, "another capture …"));
  select.addEventListener("change", () => {
    if (select.value === "file") {
      picker.click();
      select.value = "";
    } else choose(select.value === "" ? null : Number(select.value));
  });
  return el("span", {}, select, picker);
}
