// Pure parts of the page: quantities, columns, hash, ticks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundle.mjs";

const { units, columns, hash, data } = await bundled(`
  export * as units from "./units.ts";
  export * as columns from "./graph/columns.ts";
  export * as hash from "./hash.ts";
  export * as data from "./data.ts";
`);

const space = (text) => text.replace(/\u00a0/g, " ");

test("quantities read as the command prints them", () => {
  assert.equal(space(units.time(6_858_000)), "6.86 ms");
  assert.equal(space(units.time(56_200_000)), "56.2 ms");
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
  const place = { connection: 3, side: 1, from: 10, to: 20 };
  assert.deepEqual(hash.read(hash.write(place)), place);
  assert.deepEqual(hash.read("#c=x&d=7&t=9,3&<script>"), {});
});

test("data of another form is refused in words", () => {
  assert.throws(() => data.checked({ format: "tcpwhy-page/9" }), /reads reports of format tcpwhy\/2/);
  assert.throws(() => data.checked({ format: "tcpwhy-page/1", report: { format: "tcpwhy/1" } }), /here is tcpwhy\/1/);
  assert.throws(() => data.checked({ error: "no capture" }), /no capture/);
  assert.throws(() => data.checked({ format: "tcpwhy-page/1", report: { format: "tcpwhy/2", connections: [1] }, screens: [] }), /parts of it are missing/);
});
