// Pure parts of the page: quantities, columns, hash, ticks.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bundled } from "./bundle.mjs";

const { dom, units, rounds, columns, hash, data, knobs, unpack, overlay, whatif } = await bundled(`
  export * as dom from "./dom.ts";
  export * as units from "./units.ts";
  export * as rounds from "./rounds.ts";
  export * as columns from "./graph/columns.ts";
  export * as hash from "./hash.ts";
  export * as data from "./data.ts";
  export * as knobs from "./knobs.ts";
  export * as unpack from "./unpack.ts";
  export * as overlay from "./graph/overlay.ts";
  export * as whatif from "./whatif.ts";
`);

const space = (text) => text.replace(/\u00a0/g, " ");

test("quantities read as the command prints them", () => {
  assert.equal(space(units.time(6_858_000)), "6.86 ms");
  assert.equal(space(units.time(56_200_000)), "56.2 ms");
  assert.equal(space(units.time(346_941e9)), "96.4 h");
  assert.equal(space(units.bytes(524_288)), "512 KiB");
  assert.equal(space(units.bytes(147)), "147 B");
  assert.equal(space(units.rate(281_000_000)), "281 Mbit/s");
});

test("ticks are round and lie inside", () => {
  const { at, label } = units.ticks(0, 63_063_000, 7, "ns");
  assert.deepEqual(at.map((value) => space(label(value))), ["0", "10 ms", "20 ms", "30 ms", "40 ms", "50 ms", "60 ms"]);
  for (const [low, high] of [[0, 1], [5, 5], [0, 9e18], [1e12, 1e12 + 10]]) {
    assert.ok(units.ticks(low, high, 8, "ns").at.length < 20);
  }
});

test("one label is no scale", () => {
  const { at, label } = units.ticks(0, 4_270_000_000, 2, "ns");
  assert.deepEqual(at.map((value) => space(label(value))), ["0", "2 s", "4 s"]);
});

test("columns are summed, and held values come in from the left", () => {
  const series = columns.columns({ name: "", mark: "steps", ink: "", t: [10, 10, 10], y: [5, -1, 3] });
  assert.deepEqual([...series.from], [10, 20, 30]);
  assert.deepEqual([...series.low], [5, 4, 7]);
  assert.deepEqual(columns.visible(series, 21, 25), [1, 2]);
  assert.deepEqual(columns.extent(series, 21, 25), [4, 4]);
});

test("a mark that lasts is seen from its middle", () => {
  const series = columns.columns({ name: "", mark: "spans", ink: "", t: [0, 100], d: [90, 0], y: [0, 0] });
  assert.deepEqual(columns.visible(series, 50, 60), [0, 1]);
});

test("a place survives the address, and nonsense is left out", () => {
  const place = { connection: 3, side: 1, from: 10, to: 20, tries: ["path.loss=0.1%", "client.sysctl.net.ipv4.tcp_rmem=4096 131072 1048576"] };
  assert.deepEqual(hash.read(hash.write(place)), place);
  assert.deepEqual(hash.read("#w=%E0%A4%A,a%3D<b>,path.rtt%3D1ms"), { tries: ["path.rtt=1ms"] });
  assert.deepEqual(hash.read("#c=x&d=7&t=9,3&<script>"), {});
});

test("data of another form is refused in words", () => {
  assert.throws(() => data.checked({ format: "tcpwhy-page/9" }), /reads reports of format tcpwhy\/2/);
  assert.throws(() => data.checked({ format: "tcpwhy-page/1", report: { format: "tcpwhy/1" } }), /here is tcpwhy\/1/);
  assert.throws(() => data.checked({ error: "no capture" }), /no capture/);
  assert.throws(() => data.checked({ format: "tcpwhy-page/1", report: { format: "tcpwhy/2", connections: [1] }, screens: [] }), /parts of it are missing/);
});

const FITTED = { rtt_ns: 6_860_000, rate_bps: 0, queue_bytes: null, initcwnd: null, congctl: "vegas", restarts: true, loss_ppm: 0 };

test("sliders begin where it was, and a change finds its place", () => {
  const list = knobs.knobsOf(FITTED, "server");
  assert.deepEqual(knobs.changesOf(list), []);
  for (const knob of list) assert.equal(knob.places[knob.home].set, null);
  const changes = ["path.rate=50000000bit", "server.route.congctl=reno", "client.sysctl.net.ipv4.tcp_rmem=4096 65536 65536"];
  assert.deepEqual(knobs.placed(list, [...changes, "path.mtu=1400"]), ["path.mtu=1400"]);
  assert.deepEqual(knobs.changesOf(list).sort(), [...changes].sort());
  for (const knob of list) assert.equal(new Set(knob.places.map((place) => place.set)).size, knob.places.length, knob.id);
});

test("words of a shell are quoted where they need it", () => {
  assert.equal(whatif.quoted("a.pcap"), "a.pcap");
  assert.equal(whatif.quoted("it's $(x)"), "'it'\\''s $(x)'");
});

test("what lies before the second conversation is not laid over", () => {
  const figure = { id: "sequence", title: "", axis: "", unit: "B", about: "", series: [{ name: "segments", mark: "spans", ink: "data", t: [5, 10, 10], y: [0, 100, 100], h: [10, 10, 10] }] };
  const [series] = overlay.laid({ label: "x", figures: [figure], pieces: [], end: 30, before: [15, 100], rule: null }, "sequence");
  assert.deepEqual([[...series.from], [...series.low], series.name], [[0, 10], [0, 100], "segments, x"]);
});

/** A frame of LZ4 with these blocks; the highest bit of a size says that a block is plain. */
const lz4 = (flags, ...blocks) => {
  const parts = [Buffer.from([0x04, 0x22, 0x4d, 0x18, flags, 0x40, 0])];
  for (const [bytes, plain] of blocks) {
    const size = Buffer.alloc(4);
    size.writeUInt32LE((bytes.length | (plain ? 0x80000000 : 0)) >>> 0);
    parts.push(size, Buffer.from(bytes));
  }
  return Buffer.concat([...parts, Buffer.alloc(4)]);
};

const unpacked = (bytes, piece) => {
  const frame = new unpack.Lz4();
  const out = [];
  for (let at = 0; at < bytes.length; at += piece) out.push(...frame.push(bytes.subarray(at, at + piece)));
  assert.ok(frame.isAtEnd());
  return Buffer.concat(out).toString();
};

test("LZ4 is unpacked whatever the pieces, and matches reach into the block before", () => {
  // "abc", then a match of 8 from 3 back; then 3 plain signs; then a match of 4 from 6 back, and one sign.
  const match = [0x34, 0x61, 0x62, 0x63, 3, 0];
  const whole = lz4(0x40, [match], [[0x78, 0x79, 0x7a], true], [[0x00, 6, 0, 0x10, 0x21]]);
  for (const piece of [1, 3, 1000]) assert.equal(unpacked(whole, piece), "abcabcabcabxyzcabx!");
  for (const wrong of [[0x00, 9, 0], [0x00, 0, 0], [0xf0, 0xff]]) assert.throws(() => unpacked(lz4(0x60, [wrong]), 1000), /damaged/);
  assert.throws(() => unpacked(Buffer.from("no frame of LZ4"), 1000), /damaged|version/);
});

test("a coarser level has every extreme, and files have every mark", () => {
  const count = 100_000;
  const y = Array.from({ length: count }, (_, at) => (at === 0 ? 5 : at === 77_777 ? 1000 : at === 77_778 ? -1000 : 0));
  const whole = columns.columns({ name: "", mark: "dots", ink: "", t: Array(count).fill(1), y });
  const level = columns.levelFor(whole, 0, count, 500);
  assert.ok(level.length <= 2000 && level.length >= 100);
  assert.deepEqual(columns.extent(level, 0, count), [5, 1005]);
  assert.equal(columns.levelFor(whole, 0, 1000, 500), whole);
  const rare = { ...whole, rare: true };
  assert.equal(columns.levelFor(rare, 0, count, 500), rare);
});

test("signs that deceive are shown, on the page as on a terminal", () => {
  const words = readFileSync(new URL("../../crates/words/src/page.rs", import.meta.url), "utf8");
  const list = words.match(/const fn deceives[^]*?matches!\(([^]*?)\n {4}\)/)[1];
  const ranges = [...list.matchAll(/'\\u\{(\w+)\}'(?:\.\.='\\u\{(\w+)\}')?/g)];
  const there = new Set();
  for (const [, first, last] of ranges) {
    for (let code = Number.parseInt(first, 16); code <= Number.parseInt(last ?? first, 16); code++) there.add(code);
  }
  assert.ok(there.has(0x61c) && there.has(0xe0041), "the list was read");
  for (let code = 0xa0; code <= 0x10ffff; code++) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const sign = String.fromCodePoint(code);
    assert.equal(dom.plain(sign), there.has(code) ? "\ufffd" : sign, code.toString(16));
  }
  assert.equal(dom.plain("a\u061cb\u{e0041}\u{e007f}c\u001b\n\t\u{1f600}"), "a\ufffdb\ufffd\ufffdc\ufffd\n\t\u{1f600}");
});

test("a round is as fast as what it sent by its length", () => {
  const all = [
    { start_ns: 0, bytes: 14_480, rtt_ns: 7e6 },
    { start_ns: 7e6, bytes: 28_960, rtt_ns: 7e6 },
    { start_ns: 21e6, bytes: 1000, rtt_ns: 8e6 },
    { start_ns: 30e6, bytes: 500, rtt_ns: null },
  ];
  assert.deepEqual([0, 1, 2, 3].map((at) => rounds.pace(all, at)?.toFixed(0) ?? null), ["16548571", "16548571", "888889", null]);
  assert.equal(rounds.pace(all.slice(0, 3), 2), 1e6, "the last takes its round trip");
});
