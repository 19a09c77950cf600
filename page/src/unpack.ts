// Streams of packed files: gzip by the browser, zstd by fzstd, and frames of LZ4 here (lz4_Frame_format.md of the lz4
// project). What is not packed passes as it is.

import { Decompress } from "fzstd";

type Bytes = Uint8Array<ArrayBuffer>;

const starts = (head: Uint8Array, ...bytes: number[]): boolean => bytes.every((byte, at) => head[at] === byte);

export function unpacking(head: Uint8Array, raw: ReadableStream<Bytes>): ReadableStream<Uint8Array> {
  if (starts(head, 0x1f, 0x8b)) return raw.pipeThrough(new DecompressionStream("gzip"));
  if (starts(head, 0x28, 0xb5, 0x2f, 0xfd)) return raw.pipeThrough(zstd());
  if (starts(head, 0x04, 0x22, 0x4d, 0x18)) return raw.pipeThrough(lz4());
  return raw;
}

function zstd(): TransformStream<Bytes, Uint8Array> {
  let inner: Decompress;
  return new TransformStream({
    start(to) {
      inner = new Decompress((piece) => piece.length > 0 && to.enqueue(piece));
    },
    transform(piece) {
      inner.push(piece);
    },
    flush() {
      inner.push(new Uint8Array(0), true);
    },
  });
}

/** Bytes that a match may reach back. */
const WINDOW = 1 << 16;

export function lz4(): TransformStream<Bytes, Uint8Array> {
  const frame = new Lz4();
  return new TransformStream({
    transform(piece, to) {
      for (const out of frame.push(piece)) to.enqueue(out);
    },
    flush() {
      if (!frame.isAtEnd()) throw new Error("the packed file is cut");
    },
  });
}

/** Frames of LZ4, one after the other. Checksums are passed over. */
export class Lz4 {
  private rest: Uint8Array = new Uint8Array(0);
  private before: Uint8Array = new Uint8Array(0);
  /** Of the frame that is read: its flags, and the most bytes of a block; null between frames. */
  private frame: { linked: boolean; blockSum: boolean; sum: boolean; most: number } | null = null;

  isAtEnd(): boolean {
    return this.frame === null && this.rest.length === 0;
  }

  push(piece: Uint8Array): Uint8Array[] {
    const all = new Uint8Array(this.rest.length + piece.length);
    all.set(this.rest);
    all.set(piece, this.rest.length);
    const out: Uint8Array[] = [];
    let at = 0;
    for (;;) {
      const taken = this.frame ? this.block(all, at, out) : this.head(all, at);
      if (taken === 0) break;
      at += taken;
    }
    this.rest = all.slice(at);
    return out;
  }

  /** Bytes of a frame's head, 0 if it is not there yet. */
  private head(all: Uint8Array, at: number): number {
    const left = all.length - at;
    if (left < 7) return 0;
    const magic = word(all, at);
    if (magic >>> 4 === 0x184d2a5) return left < 8 + word(all, at + 4) ? 0 : 8 + word(all, at + 4);
    if (magic !== 0x184d2204) throw new Error("the packed file is damaged");
    const flags = all[at + 4];
    if (flags >> 6 !== 1) throw new Error("the packed file has an unknown version of LZ4");
    const size = 7 + (flags & 8 ? 8 : 0) + (flags & 1 ? 4 : 0);
    if (left < size) return 0;
    const most = 1 << (8 + 2 * ((all[at + 5] >> 4) & 7));
    this.frame = { linked: (flags & 0x20) === 0, blockSum: (flags & 0x10) !== 0, sum: (flags & 4) !== 0, most };
    this.before = new Uint8Array(0);
    return size;
  }

  private block(all: Uint8Array, at: number, out: Uint8Array[]): number {
    const frame = this.frame;
    const left = all.length - at;
    if (!frame || left < 4) return 0;
    const length = word(all, at) & 0x7fffffff;
    if (word(all, at) === 0) {
      const size = 4 + (frame.sum ? 4 : 0);
      if (left < size) return 0;
      this.frame = null;
      return size;
    }
    if (length > frame.most) throw new Error("the packed file is damaged");
    const size = 4 + length + (frame.blockSum ? 4 : 0);
    if (left < size) return 0;
    const body = all.subarray(at + 4, at + 4 + length);
    const plain = all[at + 3] & 0x80 ? body.slice() : unpackedBlock(body, this.before, frame.most);
    out.push(plain);
    if (frame.linked) {
      const both = new Uint8Array(this.before.length + plain.length);
      both.set(this.before);
      both.set(plain, this.before.length);
      this.before = both.slice(Math.max(0, both.length - WINDOW));
    }
    return size;
  }
}

function word(bytes: Uint8Array, at: number): number {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
}

/** One block, whose matches may reach into what was before it. */
function unpackedBlock(block: Uint8Array, before: Uint8Array, most: number): Uint8Array {
  const out = new Uint8Array(before.length + most);
  out.set(before);
  let to = before.length;
  let at = 0;
  const long = (short: number): number => {
    let length = short;
    if (short !== 15) return length;
    let more = 255;
    while (more === 255) {
      if (at >= block.length) throw new Error("the packed file is damaged");
      more = block[at];
      at += 1;
      length += more;
    }
    return length;
  };
  while (at < block.length) {
    const token = block[at];
    at += 1;
    const literals = long(token >> 4);
    if (at + literals > block.length || to + literals > out.length) throw new Error("the packed file is damaged");
    out.set(block.subarray(at, at + literals), to);
    [at, to] = [at + literals, to + literals];
    if (at >= block.length) break;
    const back = block[at] | (block[at + 1] << 8);
    at += 2;
    const match = long(token & 15) + 4;
    if (back === 0 || back > to || to + match > out.length) throw new Error("the packed file is damaged");
    for (let index = 0; index < match; index += 1) out[to + index] = out[to + index - back];
    to += match;
  }
  return out.slice(before.length, to);
}
