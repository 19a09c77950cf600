// Saves what is shown: the report as JSON, or the page with it.

import type { Shown } from "./data.ts";
import { el } from "./dom.ts";

function save(blob: Blob, name: string): void {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function saveJson(shown: Shown): void {
  save(new Blob([JSON.stringify(shown.report), "\n"], { type: "application/json" }), "tcpwhy.json");
}

/** This page with `shown` in it, as the command writes it. */
export async function savePage(shown: Shown): Promise<void> {
  const part = (selector: string): string => document.querySelector(selector)?.textContent ?? "";
  const policy = document.querySelector("meta[http-equiv]")?.getAttribute("content") ?? "";
  const code = [...document.scripts].find((script) => script.type === "")?.textContent ?? "";
  const packed = new Blob([JSON.stringify(shown)]).stream().pipeThrough(new CompressionStream("gzip"));
  const data = await base64(await new Response(packed).blob());
  const licence = [...document.childNodes].find((node) => node.nodeType === Node.COMMENT_NODE)?.nodeValue ?? "";
  const page = `<!doctype html>
<!--${licence}-->
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tcpwhy</title>
<link rel="icon" href="data:,">
<style>${part("style")}</style>
</head>
<body>
<noscript>This page needs JavaScript to draw its report. It loads nothing and sends nothing.</noscript>
<div id="app"></div>
<script type="text/plain" id="data">${data}<${""}/script>
<script type="text/plain" id="series"><${""}/script>
<script type="text/plain" id="core">${part("#core")}<${""}/script>
<script>${code}<${""}/script>
</body>
</html>
`;
  save(new Blob([page], { type: "text/html" }), "tcpwhy.html");
}

/** A blob as base64 text, by the browser. */
function base64(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error ?? new Error("it cannot be packed"));
    reader.readAsDataURL(blob);
  });
}
