// Makes a module of the page's sources for Node.
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export async function bundled(contents) {
  const resolveDir = fileURLToPath(new URL("../src", import.meta.url));
  const result = await build({ stdin: { contents, resolveDir, loader: "ts" }, bundle: true, write: false, format: "esm", target: "es2022" });
  return import(`data:text/javascript;base64,${Buffer.from(result.outputFiles[0].text).toString("base64")}`);
}
