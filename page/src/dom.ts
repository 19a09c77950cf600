// Elements from code. Text is always a text node: nothing that a capture holds becomes markup.

type Child = Node | string | null | undefined | false;

export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Record<string, string | boolean | ((event: Event) => void)> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.replace(/^on/, ""), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false) node.setAttribute(name, value);
  }
  for (const child of children) if (child) node.append(child);
  return node;
}

// Controls but tab and line feed, and what `words::page::deceives` lists: bidirectional controls, joiners, separators, tags.
const DECEIVES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

/** `text`, but what would turn the writing's direction, break its lines or hide is shown as a sign. */
export function plain(text: string): string {
  return text.replace(DECEIVES, "\ufffd");
}

/** A sentence whose numbers keep their units on one line. */
export function tied(text: string): string {
  return plain(text).replace(/(\d) /g, "$1\u00a0");
}
