// What a page shows, as the core writes it, and how it lies in the file.

import type { Unit } from "./units.ts";

export const FORMAT = "tcpwhy-page/1";
export const REPORT = "tcpwhy/2";

export interface Shown {
  format: string;
  version: string;
  report: Report;
  head: string;
  states: StateWords[];
  screens: Screen[];
  order: number[];
  pictures: Record<string, (Figure[] | null)[]>;
  fits?: Record<string, Fitted>;
  tries?: string[];
  texts?: { title: string; text: string }[];
}

/** What the model begins with, which only the core reads, or why it cannot. */
export interface Fitted {
  fit?: string;
  unfit?: string;
}

export interface StateWords {
  letter: string;
  name: string;
  bar: [string, string];
  family: string;
}

export interface Screen {
  id: number;
  who: string;
  what: string;
  failed: string | null;
  main: number | null;
  now: string;
  changes: { label: string; then: string; gain: string; saves: [number, number] | null; code: string; command: string | null }[];
  below: string | null;
  advice: { who: string; what: string; command: string | null }[];
  took: string;
  bars: { name: string; ns: number; time: string; share: string; letter: string }[];
  trust: string;
  row: { peer: string; what: string; took: string; took_ns: number; why: string; gain: string };
}

export interface Series {
  name: string;
  mark: "spans" | "steps" | "area" | "band" | "dots" | "crosses" | "ticks";
  ink: string;
  rare?: boolean;
  t: number[];
  d?: number[];
  y: number[];
  h?: number[];
  f?: number[];
  n?: number[];
}

export interface Note {
  from_ns: number;
  to_ns: number;
  letter: string;
  text: string;
  filter: string;
}

export interface Figure {
  id: string;
  title: string;
  axis: string;
  unit: Unit;
  about: string;
  notes?: Note[];
  series: Series[];
}

export interface Limit {
  start_ns: number;
  end_ns: number;
  state: string;
}

export interface Round {
  start_ns: number;
  bytes: number;
  segments: number;
  rtt_ns: number | null;
  window_room_bytes: number | null;
  cwnd: { low: number | null; high: number | null; best: number | null };
  limited_by: string;
  in_flight_bytes: number;
}

export interface Direction {
  strip: string;
  limits: Limit[];
  rounds: Round[];
  ceilings: { kind: string; rate_bps: number; proven: boolean }[];
  rtt: { min_ns: number | null };
  bytes: number;
}

export interface Finding {
  code: string;
  severity: string;
  title: string;
  why: string;
  not: string;
  evidence: { from_ns: number; to_ns: number; text: string; filter: string }[];
  from: string | null;
}

export interface Connection {
  id: number;
  client: string;
  server: string;
  duration_ns: number;
  stream: number | null;
  answer: string;
  directions: (Direction | null)[];
  findings: Finding[];
  vantage_evidence: string;
}

export interface Report {
  format: string;
  captures: {
    source: string;
    packets: number;
    tcp_segments: number;
    quality: { kind: string; count: number; note: string }[];
    skipped: { reason: string; count: number }[];
    error: string | null;
  }[];
  connections: Connection[];
}

/** Bytes of base64 text. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** What was packed by gzip. */
export async function unpacked(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** What lies in the file, or what is wrong with it; null if the page is empty. */
export async function embedded(text: string): Promise<Shown | null> {
  const packed = text.trim();
  if (packed === "" || packed.startsWith("@")) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder().decode(await unpacked(fromBase64(packed))));
  } catch {
    throw new Error("The report in this file is damaged: it was cut or changed. Write it again with tcpwhy FILE --html.");
  }
  return checked(parsed);
}

/** What the first picture does without: graphs with all their marks, and connections of which there are rows only. */
export interface Later {
  pictures: Shown["pictures"];
  connections?: [number, Connection][];
}

/** Whether all of a connection is there, and not only its row. */
export const isWhole = (connection: Connection | undefined): connection is Connection => connection?.findings !== undefined;

/** What comes later; null if all is there. */
export async function embeddedLater(text: string): Promise<Later | null> {
  const packed = text.trim();
  if (packed === "" || packed.startsWith("@")) return null;
  try {
    return JSON.parse(new TextDecoder().decode(await unpacked(fromBase64(packed)))) as Later;
  } catch {
    throw new Error("A part of this file is damaged: it was cut or changed. What is drawn has fewer marks. Write it again with tcpwhy FILE --html.");
  }
}

/** The data, if it has the form that this page reads. */
export function checked(parsed: unknown): Shown {
  const shown = parsed as Partial<Shown> & { error?: string };
  if (typeof shown?.error === "string") throw new Error(shown.error);
  if (shown?.format !== FORMAT || shown.report?.format !== REPORT) {
    const found = shown?.report?.format ?? shown?.format ?? "none";
    throw new Error(`This page reads reports of format ${REPORT}; here is ${String(found)}. Write it again with this version of tcpwhy.`);
  }
  if (!Array.isArray(shown.screens) || !Array.isArray(shown.report.connections) || shown.screens.length !== shown.report.connections.length) {
    throw new Error("The report in this file is damaged: parts of it are missing.");
  }
  return shown as Shown;
}
