// The page as people use it: the real file, from disk, in a browser.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { launched, opened } from "./open.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tcpwhy = process.env.TCPWHY ?? join(root, "target/debug/tcpwhy");
const work = mkdtempSync(join(tmpdir(), "tcpwhy-page-"));
const article = join(root, "testdata/articles/download-512k-rtt7ms.tcpdump.txt");
const run = (...words) => execFileSync(tcpwhy, words, { cwd: work, maxBuffer: 1 << 28 });

let browser;
let report;
let empty;

before(async () => {
  browser = await launched();
  report = join(work, "report.html");
  run(article, "--html", report);
  empty = join(work, "empty.html");
  writeFileSync(empty, run("page"));
});
after(() => browser?.close());

/** How many colours a canvas shows. */
const colors = (page, selector) =>
  page.$eval(selector, (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });

/** Drops a file on the page, and waits until it is explained or refused. */
async function drop(page, path, name = basename(path)) {
  const base64 = readFileSync(path).toString("base64");
  await page.evaluate(
    ([text, called]) => {
      const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
      const data = new DataTransfer();
      data.items.add(new File([bytes], called));
      document.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
    },
    [base64, name],
  );
  await page.waitForFunction(() => document.querySelector(".captures, .status.wrong"), null, { timeout: 60_000 });
}

async function savedJson(page) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save the report as JSON")]);
  return JSON.parse(readFileSync(await download.path(), "utf8"));
}

test("the report of the file is shown: the answer, what would be faster, and each graph", async () => {
  const { page, wrong, context } = await opened(browser, report);
  assert.match(await page.textContent(".answer"), /^Slow start took most of it/);
  assert.match(await page.textContent(".changes"), /reuse the connection/);
  for (const id of ["sequence", "flight", "rate", "rtt", "window"]) {
    assert.ok((await colors(page, `#graph-${id} canvas`)) > 4, `${id} is drawn`);
  }
  assert.ok((await colors(page, "canvas.strip")) > 4);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("keys and mouse zoom, and the address brings the place back", async () => {
  const { page, wrong, context } = await opened(browser, report);
  await page.keyboard.press("w");
  await page.waitForFunction(() => location.hash.includes("t="));
  const keyed = await page.evaluate(() => location.hash);
  await page.locator("#graph-sequence canvas").scrollIntoViewIfNeeded();
  const box = await (await page.$("#graph-sequence canvas")).boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 120, { steps: 4 });
  await page.mouse.up();
  const dragged = await page.evaluate(() => location.hash);
  assert.notEqual(dragged, keyed);
  await page.reload();
  await page.waitForSelector("#graph-sequence canvas");
  assert.equal(await page.evaluate(() => location.hash), dragged);
  await page.keyboard.press("d");
  const [from, to] = /t=(\d+),(\d+)/.exec(await page.evaluate(() => location.hash)).slice(1).map(Number);
  const [before, behind] = /t=(\d+),(\d+)/.exec(dragged).slice(1).map(Number);
  assert.ok(from > before && Math.abs(to - from - (behind - before)) < 5, "moved by a fifth, as wide as before");
  await page.keyboard.press("0");
  await page.waitForFunction(() => !location.hash.includes("t="));
  assert.deepEqual(wrong, []);
  await context.close();
});

test("evidence leads to its place, and the cursor tells frames", async () => {
  const { page, context } = await opened(browser, report);
  await page.click("text=What was found");
  await page.click(".findings button.link >> nth=0");
  await page.waitForFunction(() => location.hash.includes("t="));
  const box = await (await page.$("#graph-sequence canvas")).boundingBox();
  let told = "";
  for (let part = 0.1; part < 0.95 && !told.includes("frame.number"); part += 0.01) {
    await page.mouse.move(box.x + box.width * part, box.y + 100);
    await page.waitForTimeout(20);
    told = await page.textContent("#graph-sequence .readout");
  }
  assert.match(told, /frame\.number == \d+/);
  await context.close();
});

test("graphs are saved as PNG and SVG", async () => {
  const { page, wrong, context } = await opened(browser, report);
  for (const [kind, head] of [["PNG", "\u0089PNG"], ["SVG", "<svg"]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(`#graph-flight .saves >> text=${kind}`)]);
    assert.equal(readFileSync(await download.path(), "latin1").slice(0, 4), head);
  }
  assert.deepEqual(wrong, []);
  await context.close();
});

test("files of graphs that the command writes are those that the page saves, byte for byte", async () => {
  for (const capture of ["articles/download-512k-rtt7ms.tcpdump.txt", "cases/two-percent-loss-at-40-ms/capture.pcap.gz", "cases/reader-stalls-two-seconds/capture.pcap.gz"]) {
    const path = join(root, "testdata", capture);
    const html = join(work, "graphs.html");
    run(path, "--html", html);
    run(path, "--svg", join(work, "graphs"));
    const { page, context } = await opened(browser, html);
    for (const id of ["sequence", "flight", "rate", "rtt", "window"]) {
      const [download] = await Promise.all([page.waitForEvent("download"), page.click(`#graph-${id} .saves >> text=SVG`)]);
      const saved = readFileSync(await download.path(), "utf8");
      const written = readFileSync(join(work, `graphs/0-server-${id}.svg`), "utf8");
      assert.ok(saved.length > 2000 && saved === written, `${capture}, ${id}`);
    }
    await context.close();
  }
});

test("the model at play answers as tcpwhy predict does", async () => {
  const { page, wrong, context } = await opened(browser, report);
  await page.click("text=Play: what would TCP do?");
  await page.waitForSelector(".sizes tbody tr:nth-child(7)");
  assert.match(await page.textContent(".against"), /Linux.*textbook \(Reno\)/);
  await page.focus("#knob-rtt");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector(".play > code").textContent.includes("--rtt 60ms"));
  await page.waitForFunction(() => /^\d/.test(document.querySelector(".played .answer")?.textContent ?? ""));
  const command = (await page.textContent(".play > code")).trim().split(" ").slice(1);
  const predicted = JSON.parse(run(...command, "--json")).runs[0];
  const shown = `${(predicted.time_ns / 1e6).toFixed(0)}\u00a0ms in ${predicted.rounds} rounds`;
  await page.waitForFunction((text) => document.querySelector(".played .answer")?.textContent.startsWith(text), shown);
  assert.deepEqual(wrong, []);
  await context.close();
});

/** Moves a slider by steps, and waits until what comes of it is drawn. */
async function moved(page, id, by) {
  await page.evaluate(
    ([name, steps]) =>
      new Promise((resolve) => {
        const slider = document.getElementById(`whatif-${name}`);
        document.querySelector(".whatif").addEventListener("drawn", resolve, { once: true });
        slider.value = String(Number(slider.value) + steps);
        slider.dispatchEvent(new Event("input"));
      }),
    [id, by],
  );
}

/** The words of a line for a shell that has only single quotes. */
const words = (line) => [...line.matchAll(/'((?:[^']|'\\'')*)'|(\S+)/g)].map((each) => each[2] ?? each[1].replace(/'\\''/g, "'"));

test("what a slider says is what tcpwhy whatif says, and it is drawn over the graphs", async () => {
  const { page, wrong, context } = await opened(browser, report);
  const bare = await colors(page, "#graph-sequence canvas");
  await page.click("text=What if?");
  await page.waitForSelector("#whatif-rtt", { timeout: 60_000 });
  assert.match(await page.textContent(".whatif .hint"), /the model says .*.ms in 7 rounds; the capture has 49\.3.ms in 7 rounds \(−2\.4 %\)/);
  for (const [id, by] of [["initcwnd", 3], ["rtt", -1], ["rmem", 8], ["loss", 4]]) {
    await moved(page, id, by);
    await page.waitForFunction(() => document.querySelector(".range")?.textContent.startsWith("From "), null, { timeout: 60_000 });
    await page.click("text=Copy the whatif command");
    const line = words(await page.textContent(".copies code")).slice(1);
    const [change] = JSON.parse(run(...line, "--json")).changes;
    const ms = (ns) => (ns >= 99_950_000 ? (ns / 1e6).toFixed(0) : ns >= 9_995_000 ? (ns / 1e6).toFixed(1) : (ns / 1e6).toFixed(2));
    assert.ok((await page.textContent(".told .what-time")).startsWith(ms(change.account.time_ns)), `${id}: ${change.account.time_ns}`);
    const range = `From ${ms(change.low_ns)}\u00a0ms to ${ms(change.high_ns)}\u00a0ms.`;
    assert.ok((await page.textContent(".range")).startsWith(range), range);
  }
  assert.ok((await colors(page, "#graph-sequence canvas")) > bare, "another colour lies over the graph");
  assert.match(await page.textContent("#graph-sequence .legend"), /segments, what if/);
  await page.click("text=Copy the lab commands");
  assert.match(await page.textContent(".copies code"), /--scenario > transfer.toml; tcpwhy lab run transfer.toml --set/);
  const told = await page.textContent(".told .what-time");
  await page.reload();
  await page.waitForFunction((text) => document.querySelector(".told .what-time")?.textContent === text, told, { timeout: 60_000 });
  await page.check("#whatif-reuse");
  await page.waitForFunction(() => /^13\.9/.test(document.querySelector(".told .what-time")?.textContent ?? ""));
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a transfer that the model does not repeat has no sliders, and says why", async () => {
  const html = join(work, "unfit.html");
  run(join(root, "testdata/cases/tls-1-3-fetch/capture.pcap"), "--html", html);
  const { page, wrong, context } = await opened(browser, html);
  await page.click("text=What if?");
  await page.waitForFunction(() => document.querySelector(".whatif-body p:not([role])"), null, { timeout: 60_000 });
  const text = await page.textContent(".whatif-body");
  assert.ok(/#?(does not repeat|cannot repeat)/.test(text) || (await page.$("#whatif-rtt")), text);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("two transfers lie over each other, from one report and from another file", async () => {
  const html = join(work, "two.html");
  run("predict", "--size", "256KiB", "--rtt", "20ms", "--initcwnd", "10,40", "--html", html);
  const { page, wrong, context } = await opened(browser, html);
  assert.equal(await page.locator(".connections tbody tr").count(), 2);
  const select = page.locator('select[aria-label^="Lay another"]');
  await select.selectOption({ index: 1 });
  assert.match(await page.textContent("#graph-flight .legend"), /in flight, #\d/);
  await select.selectOption({ index: 0 });
  assert.doesNotMatch(await page.textContent("#graph-flight .legend"), /in flight, #/);
  await page.setInputFiles('input[aria-label="Capture to lay beside"]', article);
  await page.waitForFunction(() => /in flight, #0 192\.168/.test(document.querySelector("#graph-flight .legend")?.textContent ?? ""), null, { timeout: 60_000 });
  assert.deepEqual(wrong, []);
  await context.close();
});

test("commands of other kinds write pages of the same style", async () => {
  const changed = join(work, "changed.html");
  run("whatif", article, "--set", "initcwnd=44", "--html", changed);
  const first = await opened(browser, changed);
  await first.page.waitForFunction(() => /^34\.4/.test(document.querySelector(".told .what-time")?.textContent ?? ""), null, { timeout: 60_000 });
  await first.context.close();
  const lab = join(work, "lab.html");
  run("lab", "run", "textbook", "--backend", "model", "--repeat", "1", "--html", lab);
  const second = await opened(browser, lab);
  assert.ok((await colors(second.page, "#graph-sequence canvas")) > 4);
  await second.context.close();
  const settings = join(work, "settings.txt");
  writeFileSync(settings, "net.ipv4.tcp_window_scaling = 0\n<img src=x>\n");
  const host = join(work, "host.html");
  run("check", settings, "--html", host);
  const third = await opened(browser, host);
  assert.match(await third.page.textContent("main pre"), /tcp_window_scaling/);
  assert.deepEqual([...first.wrong, ...second.wrong, ...third.wrong], []);
  await third.context.close();
});

for (const [what, from] of [["of a dropped capture", () => empty], ["that the command wrote", () => report]]) {
  test(`a page ${what} opens as it was when it is saved, and without addresses it has none`, async () => {
    const { page, wrong, context } = await opened(browser, from());
    if (from() === empty) await drop(page, article);
    for (const [button, address] of [["Save this page", true], ["Save without addresses", false]]) {
      const [download] = await Promise.all([page.waitForEvent("download"), page.click(`text=${button}`)]);
      const file = join(work, `saved-${address}.html`);
      await download.saveAs(file);
      const saved = await opened(browser, file);
      const text = await saved.page.evaluate(() => document.body.textContent);
      assert.equal(text.includes("192.168.247.1"), address, button);
      assert.match(text, /Slow start took most of it/);
      const json = JSON.stringify(await savedJson(saved.page));
      assert.equal(json.includes("192.168.247.1"), address, button);
      assert.ok((await colors(saved.page, "#graph-sequence canvas")) > 4);
      assert.deepEqual(saved.wrong, []);
      await saved.context.close();
    }
    assert.deepEqual(wrong, []);
    await context.close();
  });
}

test("light and dark are chosen by the system and by a key", async () => {
  const { page, context } = await opened(browser, report, { dark: true });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const night = await ground();
  await page.keyboard.press("t");
  assert.notEqual(await ground(), night);
  await context.close();
});

for (const [what, path] of [
  ["a listing", article],
  ["a pcap", join(root, "testdata/cases/tls-1-3-fetch/capture.pcap")],
  ["a packed pcapng", join(root, "testdata/cases/reader-12-kib-each-15-ms-ipv6/capture.pcapng.gz")],
  ["a capture packed by zstd", join(root, "page/test/packed/fetch.pcap.zst")],
  ["a capture packed by LZ4", join(root, "page/test/packed/fetch.pcap.lz4")],
]) {
  test(`${what} that is dropped is explained as the command does`, async () => {
    const { page, wrong, context } = await opened(browser, empty);
    await drop(page, path);
    const here = await savedJson(page);
    const there = JSON.parse(run(path, "--json"));
    here.captures[0].source = there.captures[0].source;
    assert.deepEqual(here, there);
    assert.deepEqual(wrong, []);
    await context.close();
  });
}

test("what is no capture, empty or cut is told in words", async () => {
  const { page, wrong, context } = await opened(browser, empty);
  const nothing = join(work, "nothing.pcap");
  writeFileSync(nothing, "");
  await drop(page, nothing);
  assert.match(await page.textContent(".status"), /nothing\.pcap cannot be explained/);
  await context.close();
  assert.deepEqual(wrong, []);
  const host = await opened(browser, empty);
  const sockets = join(work, "ss.txt");
  writeFileSync(sockets, "State Recv-Q Send-Q Local Peer\nESTAB 0 0 10.0.0.1:22 10.0.0.2:5000\n");
  await drop(host.page, sockets);
  assert.match(await host.page.textContent(".status"), /is judged by the command/);
  await host.context.close();
  const cut = join(work, "cut.html");
  const text = readFileSync(report, "utf8");
  writeFileSync(cut, text.replace(/(id="data">.{4000})[^<]*/, "$1"));
  const other = await opened(browser, cut);
  assert.match(await other.page.textContent(".status"), /damaged: it was cut or changed/);
  await other.context.close();
});

test("hostile names are text", async () => {
  const name = "<img src=x onerror=document.title='owned'>.txt";
  const { page, wrong, context } = await opened(browser, empty);
  await drop(page, article, name);
  assert.ok((await page.textContent(".captures")).includes("<img"));
  assert.equal(await page.$("main img"), null);
  assert.doesNotMatch(await page.title(), /^owned/);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("without WebAssembly the report is shown, and a drop says what is missing", async () => {
  const context = await browser.newContext();
  await context.addInitScript(() => delete globalThis.WebAssembly);
  const page = await context.newPage();
  const refused = join(work, "refused.html");
  writeFileSync(refused, readFileSync(report, "utf8").replace("'wasm-unsafe-eval'", ""));
  await page.goto(`file://${refused}`);
  await page.waitForSelector(".answer");
  await page.evaluate(() => document.querySelector(".captures").remove());
  await drop(page, article);
  assert.match(await page.textContent(".status"), /does not run the core/);
  await context.close();
});

test("axe finds no serious fault", async () => {
  const source = readFileSync(join(root, "page/node_modules/axe-core/axe.min.js"), "utf8");
  for (const dark of [false, true]) {
    const { page, context } = await opened(browser, report, { dark });
    // Not by a script element, which the page's policy refuses.
    await page.evaluate(source);
    const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    const serious = found.violations.filter((each) => ["serious", "critical"].includes(each.impact));
    assert.deepEqual(serious.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(" ")}`), []);
    await context.close();
  }
});

test("at the width of a phone nothing is cut off, whatever the font and however long a file's path", async () => {
  const folder = join(work, "a".repeat(90), "b".repeat(90));
  mkdirSync(folder, { recursive: true });
  const far = join(folder, "capture.txt");
  copyFileSync(article, far);
  const html = join(work, "far.html");
  run(far, "--html", html);
  for (const spread of ["0", "0.15em"]) {
    const { page, context } = await opened(browser, html, { width: 390, height: 844 });
    await page.evaluate((wide) => {
      document.styleSheets[0].insertRule(`* { letter-spacing: ${wide} !important }`);
      for (const part of document.querySelectorAll("details")) part.open = true;
    }, spread);
    const wide = await page.evaluate(() => {
      const sticksOut = [...document.querySelectorAll("main *")].filter((each) => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== "inline" && !each.matches(".scroll"));
      return [document.documentElement.scrollWidth, ...sticksOut.map((each) => `${each.tagName}.${each.className}`)];
    });
    assert.ok(wide[0] <= 390, wide.join(" "));
    await context.close();
  }
});
