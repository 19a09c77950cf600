// A browser for the tests: Debian's Chromium, driven by playwright-core. Nothing is downloaded.
import { accessSync, constants } from "node:fs";
import { chromium } from "playwright-core";

export const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";

export function hasBrowser() {
  try {
    accessSync(EXECUTABLE, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export async function launched() {
  return chromium.launch({ executablePath: EXECUTABLE, args: ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none"] });
}

/** A page that tells of every error and of every request but the file itself. */
export async function opened(browser, file, { width = 1440, height = 900, dark = false, hash = "" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", acceptDownloads: true, reducedMotion: "reduce" });
  const page = await context.newPage();
  const wrong = [];
  const address = new URL(`file://${file}`).href;
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => {
    const url = request.url();
    if (url.split("#")[0] !== address && !/^(blob|data):/.test(url)) wrong.push(`request: ${url}`);
  });
  await page.goto(address + hash);
  await page.waitForSelector("main section");
  return { page, wrong, context };
}
