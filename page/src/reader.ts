// Hands a file to the worker, and tells how far it is.

import { checked, type Shown } from "./data.ts";
import type { Call } from "./worker.ts";

declare const WORKER: string;

export interface Reading {
  /** The page's data as JSON; null if it was cancelled. */
  done: Promise<string | null>;
  cancel: () => void;
}

/** The worker that explained the capture which is shown; it still has the report. */
let last: Worker | null = null;

/** `keeps`: its report is the one that is shown. */
export function explain(file: File, keeps: boolean, progress: (share: number) => void): Reading {
  const address = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
  const worker = new Worker(address);
  let cancel = (): void => {};
  const done = new Promise<string | null>((resolve, reject) => {
    cancel = () => resolve(null);
    worker.onmessage = (event: MessageEvent<{ shown?: string; error?: string; progress?: number; of?: number }>) => {
      const { shown, error, progress: read, of } = event.data;
      if (shown !== undefined) resolve(shown);
      else if (error !== undefined) reject(new Error(worded(error)));
      else if (read !== undefined) progress(read / Math.max(1, of ?? 1));
    };
    worker.onerror = (event) => reject(new Error(worded(event.message || "the worker could not be started")));
    worker.postMessage({ core: document.getElementById("core")?.textContent ?? "", file });
  });
  URL.revokeObjectURL(address);
  done.then(
    (text) => {
      if (text === null || !keeps) worker.terminate();
      else {
        last?.terminate();
        last = worker;
      }
    },
    () => worker.terminate(),
  );
  return { done, cancel };
}

/** The capture that was explained last, without its addresses. */
export function hidden(): Promise<string> {
  const worker = last;
  if (!worker) return Promise.reject(new Error("Its capture was not explained here."));
  return new Promise((resolve, reject) => {
    worker.onmessage = (event: MessageEvent<{ answer?: string; error?: string }>) => {
      if (event.data.answer !== undefined) resolve(event.data.answer);
      else reject(new Error(event.data.error));
    };
    worker.postMessage({ call: "hide", text: "" });
  });
}

/** A page's own data without their addresses. Graphs and what the model begins with have none, and stay as they are. */
export async function hiddenData(shown: Shown): Promise<Shown> {
  const { pictures, fits, tries } = shown;
  const model = new Model();
  try {
    const told = await model.call<Shown>("hide", JSON.stringify({ report: shown.report }));
    const given = hosts(told);
    const words = Object.values(pictures).flatMap((sides) => sides.flatMap((figures) => (figures ?? []).map(({ about, notes }) => [about, notes])));
    const kept = JSON.stringify([words, fits, tries]);
    const left = [...hosts(shown)].find((host) => !given.has(host) && kept.includes(host));
    if (left !== undefined) throw new Error(`${left} would be left in it.`);
    return { ...checked(told), pictures, fits, tries };
  } finally {
    model.end();
  }
}

const hosts = (shown: Shown): Set<string> => new Set(shown.report.connections.flatMap(({ client, server }) => [client, server].map((end) => end.replace(/:\d+$/, ""))));

/** The core in a worker of its own; questions are answered in their order. */
export class Model {
  private readonly worker: Worker;
  private readonly waiting: { resolve: (text: string) => void; reject: (error: Error) => void }[] = [];

  constructor() {
    const address = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    this.worker = new Worker(address);
    URL.revokeObjectURL(address);
    this.worker.onmessage = (event: MessageEvent<{ answer?: string; error?: string }>) => {
      const { answer, error } = event.data;
      const next = this.waiting.shift();
      if (answer !== undefined) next?.resolve(answer);
      else next?.reject(new Error(worded(error ?? "the model does not answer")));
    };
    this.worker.onerror = (event) => this.waiting.shift()?.reject(new Error(worded(event.message)));
    this.worker.postMessage({ core: document.getElementById("core")?.textContent ?? "" });
  }

  /** What the core answers to `text`. */
  async call<Answer>(what: Call, text: string): Promise<Answer> {
    const answer = await new Promise<string>((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.worker.postMessage({ call: what, text });
    });
    const parsed = JSON.parse(answer) as Answer & { error?: string };
    if (typeof parsed.error === "string") throw new Error(parsed.error);
    return parsed;
  }

  /** The first run of a prediction. */
  async predict<Run>(question: string): Promise<Run> {
    const answer = await this.call<{ runs?: Run[] }>("predict", question);
    if (!answer.runs?.length) throw new Error("the model has no answer");
    return answer.runs[0];
  }

  end(): void {
    this.worker.terminate();
  }
}

/** What a browser says when it does not run the core. */
function worded(error: string): string {
  if (/wasm|webassembly|compile/i.test(error)) return `This browser does not run the core (WebAssembly): ${error}. The command tcpwhy explains the capture.`;
  return error;
}
