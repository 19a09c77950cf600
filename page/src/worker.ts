// Explains a dropped capture, away from the page, which answers meanwhile. The capture comes as a stream: it may be
// larger than memory.

import { fromBase64, unpacked } from "./data.ts";
import { unpacking } from "./unpack.ts";

/** What the core is asked with a text. */
export type Call = "predict" | "study" | "ask" | "hide";

interface Core {
  memory: WebAssembly.Memory;
  room(length: number): number;
  answer(): number;
  begin(): void;
  push(): number;
  finish(): number;
  predict(): number;
  study(): number;
  ask(): number;
  hide(): number;
}

const scope = self as unknown as DedicatedWorkerGlobalScope;

let core: Core | null = null;
let failure = "the core is not loaded";

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
  const reader = unpacking(head, raw).getReader();
  let first: Uint8Array | null = null;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    first ??= value.slice(0, 4096);
    put(core, value);
    if (core.push() === 0) break;
    if (read - told > 1 << 20) {
      told = read;
      scope.postMessage({ progress: read, of: file.size });
    }
  }
  const shown = take(core, core.finish());
  if (shown.startsWith('{"error"') && first && isText(first)) {
    throw new Error("It is text, and no packets that tcpdump printed. What ss, sysctl, nstat and their like print on a host is judged by the command: tcpwhy FILE.");
  }
  return shown;
}

/** Whether it has signs of text only. */
function isText(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte >= 32 || byte === 9 || byte === 10 || byte === 13);
}

interface Asked {
  core?: string;
  file?: File;
  call?: Call;
  text?: string;
}

/** One after the other: the core is loaded before it is asked. */
let queue: Promise<void> = Promise.resolve();
scope.onmessage = (event: MessageEvent<Asked>) => {
  queue = queue.then(() => carryOut(event.data));
};

async function carryOut({ core: packed, file, call, text }: Asked): Promise<void> {
  try {
    if (packed !== undefined) core = await load(packed);
    else if (!core) throw new Error(failure);
    if (!core) return;
    if (file) scope.postMessage({ shown: await explain(core, file) });
    if (call !== undefined && text !== undefined) {
      put(core, new TextEncoder().encode(text));
      scope.postMessage({ answer: take(core, core[call]()) });
    }
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
    // What fails while the core is loaded is told to whoever asks it.
    if (packed === undefined || file) scope.postMessage({ error: failure });
  }
}
