import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { receiveTask, sendResult } from './worker.ts';

/** Plays callers that cannot sleep, such as curl, for a key that is held all the time. */
export interface PlainTask {
  url: string;
  key: string;
  callers: number;
  /** Callers begin at random moments within this time. */
  joinMs: number;
  /** The end, in epoch milliseconds. */
  until: number;
}

/** How many answers had each code. */
export type PlainResult = Record<string, number>;

interface Answer {
  code?: string;
  comeBackMs?: number;
  retryAfterMs?: number;
  retryWith?: object;
}

const task = await receiveTask<PlainTask>();
const answers: PlainResult = {};
const agent = new Agent({ keepAlive: true });

function post(body: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request(`${task.url}/v1/leases/acquire`, { method: 'POST', agent, headers }, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      resolve(JSON.parse(Buffer.concat(chunks).toString()));
    });
    sent.on('error', reject).end(JSON.stringify(body));
  });
}

async function waits(holder: string): Promise<void> {
  await delay(Math.random() * task.joinMs);
  const asked = { key: task.key, holder, requestId: randomUUID(), ttlSeconds: 60, waitSeconds: 20 };
  for (let again: object = {}; Date.now() < task.until; ) {
    const answer = await post({ ...asked, ...again }).catch(({ message }: Error): Answer => ({ code: message }));
    const { code = 'granted', comeBackMs, retryAfterMs = 1000, retryWith } = answer;
    answers[code] = (answers[code] ?? 0) + 1;
    again = retryWith ?? again;
    await delay(comeBackMs ?? retryAfterMs);
  }
}

// Callers that still wait at the end stop with the process.
for (let nth = 0; nth < task.callers; nth++) void waits(`plain ${nth}`);
await delay(task.until - Date.now());
sendResult(answers);
