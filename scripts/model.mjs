// Asks the model's WASM module (crates/wasm), as a page does.
//
//   node scripts/model.mjs MODULE.wasm < QUESTIONS > ANSWERS     one JSON object a line
//   node scripts/model.mjs MODULE.wasm --time < QUESTIONS        the processor's time for all, in ms

import { readFileSync } from 'node:fs';

const [path, mode] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(path), {});
const { memory, room, predict, answer } = instance.exports;

// The module's memory may move when it grows: views of it are made anew each time.
function ask(question) {
  const bytes = new TextEncoder().encode(question);
  const place = room(bytes.length);
  new Uint8Array(memory.buffer, place, bytes.length).set(bytes);
  const length = predict();
  return new TextDecoder().decode(new Uint8Array(memory.buffer, answer(), length));
}

const questions = readFileSync(0, 'utf8').split('\n').filter((line) => line !== '');
if (mode === '--time') {
  ask(questions[0]);
  const before = process.cpuUsage();
  const failed = questions.filter((question) => !('runs' in JSON.parse(ask(question))));
  const { user, system } = process.cpuUsage(before);
  if (failed.length > 0) throw new Error(`no run: ${ask(failed[0])}`);
  console.log(((user + system) / 1000).toFixed(1));
} else {
  for (const question of questions) console.log(ask(question));
}
