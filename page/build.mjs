// Makes the page's frame: code and style in one file, with the hashes of both in its policy.
//
//   node build.mjs              dist/page.html
//   node build.mjs core FILE    dist/core.wasm.gz, from the module that scripts/page-core builds
//   node build.mjs same FILE    whether dist holds what would be built now
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

const options = { bundle: true, minify: true, write: false, target: "es2022", charset: "utf8", legalComments: "none" };

async function bundled(entry, more = {}) {
  const result = await build({ ...options, format: "iife", entryPoints: [here(entry)], ...more });
  return result.outputFiles[0].text.trim();
}

const hashed = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

async function frame() {
  const worker = await bundled("src/worker.ts");
  const script = await bundled("src/main.ts", { define: { WORKER: JSON.stringify(worker) } });
  const style = await bundled("src/page.css", { format: undefined });
  if (/<\/script/i.test(script) || /<\/style/i.test(style)) throw new Error("the code would end its own element");
  const policy = [
    "default-src 'none'",
    `script-src ${hashed(script)} 'wasm-unsafe-eval'`,
    "worker-src blob:",
    `style-src ${hashed(style)}`,
    "img-src data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const licence = readFileSync(here("node_modules/fzstd/LICENSE"), "utf8").trim();
  const fill = { policy, script, style, licence: `fzstd, which unpacks zstd:\n\n${licence}` };
  return readFileSync(here("src/page.html"), "utf8").replace(/@(policy|script|style|licence)@/g, (_, name) => fill[name]);
}

mkdirSync(here("dist"), { recursive: true });
const [what, file] = process.argv.slice(2);
if (what === "core") {
  writeFileSync(here("dist/core.wasm.gz"), gzipSync(readFileSync(file), { level: 9 }));
} else if (what === "same") {
  const old = [];
  if (readFileSync(here("dist/page.html"), "utf8") !== (await frame())) old.push("page/dist/page.html");
  if (!gunzipSync(readFileSync(here("dist/core.wasm.gz"))).equals(readFileSync(file))) old.push("page/dist/core.wasm.gz");
  if (old.length > 0) {
    console.error(`not what would be built of these sources: ${old.join(", ")}; \`make page\` builds them`);
    process.exit(1);
  }
} else {
  writeFileSync(here("dist/page.html"), await frame());
}
