import { undocumentedAt } from '../../contract/conformance.ts';

/** One answer of the API, and how long it took. */
export interface Reply {
  status: number;
  body: Record<string, unknown>;
}

/** What went wrong, or was answered. */
export class Tally {
  readonly latencies: number[] = [];
  /** By `call outcome`. */
  readonly outcomes = new Map<string, number>();
  readonly wrong: string[] = [];
  /** Calls that were answered with an error of the service's own. */
  refused = 0;

  note(what: string): void {
    this.outcomes.set(what, (this.outcomes.get(what) ?? 0) + 1);
  }

  /** A wrong answer. The first few tell enough. */
  check(isRight: boolean, what: string, ...details: unknown[]): void {
    if (!isRight && this.wrong.length < 20)
      this.wrong.push(`${what}: ${details.map((one) => JSON.stringify(one)).join(' ')}`);
  }
}

/** Where a refusal says that a retry helps; told apart from what is refused for good. */
const OVERLOAD = new Set(['Throttled', 'Unavailable', 'OutcomeUnknown']);

/** Calls the API and checks that the contract documents whatever it answers. Node's fetch keeps a connection for each caller. */
export class ApiClient {
  readonly #url: string;
  readonly #tally: Tally;

  constructor(url: string, tally: Tally) {
    this.#url = url;
    this.#tally = tally;
  }

  /** @param documented the error codes that this call may end with in this load */
  async post(path: string, payload: object, documented: readonly string[]): Promise<Reply> {
    const body = JSON.stringify(payload);
    return this.#answered(path, documented, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  }

  async get(path: string, query: Record<string, string>, documented: readonly string[] = []): Promise<Reply> {
    return this.#answered(`${path}?${new URLSearchParams(query)}`, documented, {});
  }

  async #answered(path: string, documented: readonly string[], request: RequestInit): Promise<Reply> {
    const sentAt = performance.now();
    const response = await fetch(this.#url + path, request);
    const text = await response.text();
    this.#tally.latencies.push(performance.now() - sentAt);
    const body = JSON.parse(text) as Record<string, unknown>;
    const outcome = response.ok ? 'ok' : String(body.code);
    this.#tally.note(`${(request.method ?? 'GET').padEnd(4)} ${path.replace(/\?.*$/, '')} ${outcome}`);
    if (OVERLOAD.has(outcome)) this.#tally.refused += 1;
    const [route = ''] = path.split('?');
    const contentType = response.headers.get('content-type') ?? '';
    const fault = undocumentedAt(request.method ?? 'GET', route, { status: response.status, contentType, body });
    this.#tally.check(fault === undefined, String(fault), body);
    const isExpected = response.ok || documented.includes(outcome) || OVERLOAD.has(outcome);
    this.#tally.check(isExpected, `${path} was answered ${response.status}`, body);
    return { status: response.status, body };
  }
}
