// Explains a dropped capture, away from the page, which answers meanwhile. The capture comes as a stream: it may be
// larger than memory.

import { fromBase64, unpacked } from "./data.ts";

interface Core {
  memory: WebAssembly.Memory;
  room(length: number): number;
  answer(): number;
  begin(): void;
  push(): number;
  finish(): number;
  predict(): number;
}

const scope = self as unknown as DedicatedWorkerGlobalScope;

let core: Core | null = null;

async function load(text: string): Promise<Core> {
  const module = await WebAssembly.instantiate(await unpacked(fromBase64(text.trim())));
  return module.instance.exports as unknown as Core;
}

function put(core: Core, bytes: Uint8Array): void {
  const at = core.room(bytes.length);
  new Uint8Array(core.memory.buffer, at, bytes.length).set(bytes);
}

function take(core: Core, length: number): string {
  return new TextDecoder().decode(new Uint8Array(core.memory.buffer, core.answer(), length));
}

async function explain(core: Core, file: File): Promise<string> {
  const head = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  const isPacked = head[0] === 0x1f && head[1] === 0x8b;
  if (head[0] === 0x28 && head[1] === 0xb5 && head[2] === 0x2f && head[3] === 0xfd) throw new Error("It is packed by zstd, which browsers do not unpack: unpack it first, or use the command.");
  put(core, new TextEncoder().encode(file.name));
  core.begin();
  let read = 0;
  let told = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, to) {
      read += piece.length;
      to.enqueue(piece);
    },
  });
  const raw = file.stream().pipeThrough(counted as unknown as ReadableWritablePair<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>);
  const stream = isPacked ? raw.pipeThrough(new DecompressionStream("gzip")) : raw;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    put(core, value);
    if (core.push() === 0) break;
    if (read - told > 1 << 20) {
      told = read;
      scope.postMessage({ progress: read, of: file.size });
    }
  }
  return take(core, core.finish());
}

interface Asked {
  core?: string;
  file?: File;
  question?: string;
}

/** One after the other: the core is loaded before it is asked. */
let queue: Promise<void> = Promise.resolve();
scope.onmessage = (event: MessageEvent<Asked>) => {
  queue = queue.then(() => carryOut(event.data));
};

async function carryOut({ core: text, file, question }: Asked): Promise<void> {
  try {
    if (text !== undefined) core = await load(text);
    if (!core) throw new Error("the core is not loaded");
    if (file) scope.postMessage({ shown: await explain(core, file) });
    if (question !== undefined) {
      put(core, new TextEncoder().encode(question));
      scope.postMessage({ predicted: take(core, core.predict()) });
    }
  } catch (error) {
    scope.postMessage({ error: error instanceof Error ? error.message : String(error) });
  }
}
