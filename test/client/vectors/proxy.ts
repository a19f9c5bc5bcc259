import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { READS, ROUTES } from '../../../clients/typescript/src/routes.ts';
import { undocumented } from '../../../contract/conformance.ts';
import { type Listening, listen } from '../../../local/listen.ts';
import { type Answer, pass, reply } from '../../../verification/client/passing.ts';
import type { Fields, Json, Reply, Row, Vectors } from './row.ts';

/** The proof of every scripted grant. No text of a client may contain it. */
export const SECRET = '0f1e2d3c-secret-lease-id';

/** What the proxy saw of a request. */
export interface Received {
  at: number;
  operation: string;
  fields: Fields;
}

interface Held {
  dueAt: number;
  response: ServerResponse;
  answer: Answer;
}

const BEGIN = Date.parse('2026-01-01T00:00:00.000Z');

/** A proxy that does with each request what a row says: it answers for the service, or passes the request on to a real one. */
export class ScriptedProxy {
  readonly received: Received[] = [];
  /** Milliseconds of true time. */
  now = 0;
  /** Requests that were not answered yet. */
  open = 0;
  /** Requests that have not fully arrived, or that are at the service. */
  busy = 0;
  /** Goes up with everything that happens. */
  changes = 0;
  /** Answers that break the contract, which are mistakes of a row. */
  readonly mistakes: string[] = [];
  #held: Held[] = [];
  readonly #row: Row;
  readonly #vectors: Vectors;
  readonly #target: string | undefined;
  #listening: Listening | undefined;

  /** @param target the URL of the service; undefined if the row has every answer */
  constructor(row: Row, vectors: Vectors, target?: string) {
    this.#row = row;
    this.#vectors = vectors;
    this.#target = target;
  }

  async start(): Promise<string> {
    this.#listening = await listen((request, response) => this.#handle(request, response));
    return this.#listening.url;
  }

  async stop(): Promise<void> {
    await this.#listening?.stop();
  }

  /** When the next answer is due. */
  get dueAt(): number {
    return Math.min(...this.#held.map(({ dueAt }) => dueAt));
  }

  /** Sends the answers that are due. */
  sendDue(): void {
    const due = this.#held.filter(({ dueAt }) => dueAt <= this.now);
    this.#held = this.#held.filter(({ dueAt }) => dueAt > this.now);
    for (const { response, answer } of due) this.#send(response, answer);
  }

  count(operation: string): number {
    return this.received.filter((one) => one.operation === operation).length;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.open++;
    this.busy++;
    this.changes++;
    response.on('close', () => {
      this.open--;
      this.changes++;
      this.#held = this.#held.filter((one) => one.response !== response);
    });
    try {
      const body = await buffer(request);
      await this.#answer(request, response, body);
    } finally {
      this.busy--;
      this.changes++;
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    const { url = '', headers } = request;
    const sent = body.length > 0 ? (JSON.parse(String(body)) as Fields) : {};
    const [path = ''] = url.split('?');
    const operation = operationOf(path, request.method ?? '');
    const authorization = headers.authorization ?? null;
    const script = this.#script(operation);
    this.received.push({ at: this.now, operation, fields: { ...sent, path, authorization } });
    const how = typeof script === 'string' ? { answer: script } : script;
    const real = this.#target && how.answer !== 'dropped' ? await pass(this.#target, request, body) : undefined;
    if (how.answer === 'lost' || how.answer === 'dropped') return;
    if (how.answer === 'cut') return void request.socket.destroy();
    const answer = real && how.answer === 'pass' ? real : this.#written(operation, sent, how);
    if (!how.afterMs) return this.#send(response, answer);
    this.#held.push({ dueAt: this.now + how.afterMs, response, answer });
  }

  #send(response: ServerResponse, answer: Answer): void {
    if (!response.destroyed) reply(response, answer);
    this.changes++;
  }

  /** A single reply is for every request. After a list has ended, the usual replies follow. */
  #script(operation: string): Reply {
    const usual = this.#target ? 'pass' : this.#vectors.usual[operation];
    const script = this.#row.service?.[operation] ?? usual;
    const one = Array.isArray(script) ? (script[this.count(operation)] ?? usual) : script;
    return one ?? '404';
  }

  #written(operation: string, sent: Fields, { answer: name, with: own = {} }: Exclude<Reply, string>): Answer {
    const template = this.#vectors.answers[name];
    if (!template) throw new Error(`there is no answer ${name}`);
    const { status, body } = template;
    if (typeof body === 'string') return { status, text: body, type: 'text/html' };
    const ttlSeconds = Number(this.#row.options?.ttlSeconds ?? 60);
    const usual: Fields = { ...sent, ttlMs: ttlSeconds * 1000, secret: SECRET };
    const filled = { ...(fill(body, usual) as Fields), ...(fill(own, usual) as Fields) };
    if ('remainingMs' in filled)
      filled.expiresAt = new Date(BEGIN + this.now + Number(filled.remainingMs)).toISOString();
    // A client that takes the answer of a gateway for a grant does not have a key to send.
    const isOfGateway = 'message' in filled || !('key' in sent);
    const mistake = isOfGateway ? undefined : undocumented(operation, { status, body: filled });
    if (mistake) this.mistakes.push(mistake);
    const isProblem = String(filled.type).startsWith('urn:');
    const type = isProblem ? 'application/problem+json' : 'application/json';
    return { status, text: JSON.stringify(filled), type, ...(status === 302 && { location: '/elsewhere' }) };
  }
}

/** Puts fields of the request in the place of texts such as `{key}`. */
function fill(value: Json, fields: Fields): Json {
  if (typeof value === 'string') {
    const [, name] = /^\{(\w+)}$/.exec(value) ?? [];
    return name === undefined ? value : (fields[name] ?? null);
  }
  if (Array.isArray(value)) return value.map((one) => fill(one, fields));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fill(one, fields)]));
}

function operationOf(path: string, method: string): string {
  const route = path.replace(/^\/v1\//, '').replace(/^ns\/[^/]+\//, '');
  const found = Object.entries(ROUTES).find(([name, one]) => one === route && READS.test(name) === (method === 'GET'));
  return found?.[0] ?? `${method} ${path}`;
}
