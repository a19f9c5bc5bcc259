import { setTimeout as delay } from 'node:timers/promises';
import { httpTransport } from '../clients/typescript/src/http.ts';
import { Holdfast, type Transport } from '../clients/typescript/src/index.ts';
import { receiveTask, sendResult } from './worker.ts';

export interface CrowdTask {
  url: string;
  key: string;
  callers: number;
  /** The mean length of a turn. */
  turnMs: number;
  /** Callers begin at random moments within this time. */
  joinMs: number;
  /** When calls begin to count, and the end, in epoch milliseconds. */
  countedFrom: number;
  until: number;
}

/** When a caller asked, and when it received the key, in epoch milliseconds. */
export interface Wait {
  from: number;
  to: number | null;
}

export interface CrowdResult {
  waits: Wait[];
  calls: number;
}

const task = await receiveTask<CrowdTask>();
const found: CrowdResult = { waits: [], calls: 0 };

const http = httpTransport({ endpoint: task.url }, Date.now);
const transport: Transport = (...call) => {
  if (Date.now() >= task.countedFrom) found.calls++;
  return http(...call);
};

async function turns(holder: string): Promise<void> {
  const holdfast = new Holdfast({ transport, holder });
  while (Date.now() < task.until) {
    const wait: Wait = { from: Date.now(), to: null };
    found.waits.push(wait);
    const lease = await holdfast.acquire(task.key, { waitMs: Number.POSITIVE_INFINITY });
    wait.to = Date.now();
    await delay(task.turnMs * -Math.log(1 - Math.random()));
    await lease.release();
  }
}

const come = async (nth: number) => {
  await delay(Math.random() * task.joinMs);
  await turns(`caller ${process.pid} ${nth}`);
};

// Callers that still wait at the end stop with the process.
for (let nth = 0; nth < task.callers; nth++) void come(nth);
await delay(task.until - Date.now());
sendResult(found);
