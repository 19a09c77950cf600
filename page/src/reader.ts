// Hands a file to the worker, and tells how far it is.

declare const WORKER: string;

export interface Reading {
  /** The page's data as JSON; null if it was cancelled. */
  done: Promise<string | null>;
  cancel: () => void;
}

export function explain(file: File, progress: (share: number) => void): Reading {
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
  const end = (): void => {
    worker.terminate();
    URL.revokeObjectURL(address);
  };
  done.then(end, end);
  return { done, cancel };
}

/** The model, in a worker of its own; questions are answered in their order. */
export class Model {
  private readonly worker: Worker;
  private readonly waiting: { resolve: (text: string) => void; reject: (error: Error) => void }[] = [];

  constructor() {
    this.worker = new Worker(URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" })));
    this.worker.onmessage = (event: MessageEvent<{ predicted?: string; error?: string }>) => {
      const { predicted, error } = event.data;
      const next = this.waiting.shift();
      if (predicted !== undefined) next?.resolve(predicted);
      else next?.reject(new Error(worded(error ?? "the model does not answer")));
    };
    this.worker.onerror = (event) => this.waiting.shift()?.reject(new Error(worded(event.message)));
    this.worker.postMessage({ core: document.getElementById("core")?.textContent ?? "" });
  }

  /** The first run of the answer. */
  async ask<Run>(question: string): Promise<Run> {
    const text = await new Promise<string>((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.worker.postMessage({ question });
    });
    const answer = JSON.parse(text) as { runs?: Run[]; error?: string };
    if (!answer.runs?.length) throw new Error(answer.error ?? "the model has no answer");
    return answer.runs[0];
  }
}

/** What a browser says when it does not run the core. */
function worded(error: string): string {
  if (/wasm|webassembly|compile/i.test(error)) return `This browser does not run the core (WebAssembly): ${error}. The command tcpwhy explains the capture.`;
  return error;
}
