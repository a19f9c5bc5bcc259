import type { components } from '../../clients/typescript/src/contract.ts';
import { READS } from '../../clients/typescript/src/routes.ts';
import { type AnswerOf, type Operation, type RequestOf, routeOf } from '../../clients/typescript/src/transport.ts';

type Schemas = components['schemas'];
export type ListedKey = Schemas['ListedKey'];
export type Key = Schemas['Key'];
export type Cap = Schemas['Cap'];
export type Waiter = Schemas['Waiter'];
export type InFlight = Schemas['PathInFlight'];
export type OnceKey = Schemas['OnceKey'];
export type RateKey = Schemas['RateKey'];
export type NameRecord = Schemas['NameserviceRecord'];
export type ReportPage = Schemas['ReportPage'];
export type CleanUp = Schemas['CleanUp'];
export type Whoami = Schemas['Whoami'];

/** The fields that a lease and a run of `once` have in common, and those that only one of them may have. */
export type Granted = Omit<
  ListedKey,
  'state' | 'used' | 'limit' | 'holders' | 'bound' | 'inGrace' | 'brokenAt' | 'brokenBy'
> &
  Partial<Pick<Key, 'bound' | 'brokenAt' | 'brokenBy' | 'previous'>> & { state: string };

/** The settings of the server of the page. */
export interface Settings {
  /** The address of the API. */
  endpoint: string;
  /** The namespace of all calls, which the server of the page adds. Undefined for the whole deployment. */
  namespace?: string;
  /** True if calls that change something are passed on. */
  write: boolean;
  /** True for the stack of `npm start`, whose executions are not in the AWS console. */
  local: boolean;
}

/** The error of a call that failed. */
export class Problem extends Error {
  readonly operation: Operation | undefined;
  /** 0 if no answer came. */
  readonly status: number;
  /** The error code, if the service answered one. */
  readonly code: string | undefined;
  /** Milliseconds after which a retry may succeed. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, fields: Partial<Pick<Problem, 'operation' | 'status' | 'code' | 'retryAfterMs'>>) {
    super(message);
    this.operation = fields.operation;
    this.status = fields.status ?? 0;
    this.code = fields.code;
    this.retryAfterMs = fields.retryAfterMs;
  }
}

/** Makes a problem of what was thrown. */
export const problemOf = (error: unknown): Problem =>
  error instanceof Problem ? error : new Problem(String(error), {});

const TOKEN = 'holdfast-token';

/**
 * Keeps the token that `holdfast console` prints at the end of the address, for this tab. The token is removed from the address, so that people do not pass it
 * on with a link.
 */
export function keepToken(): void {
  const [, token] = /^#token=([\w-]+)/.exec(location.hash) ?? [];
  if (!token) return;
  sessionStorage.setItem(TOKEN, token);
  history.replaceState(null, '', '#/keys');
}

const TIMEOUT_MS = 35_000;

async function send(path: string, init: RequestInit, operation?: Operation): Promise<unknown> {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...(init.headers as Record<string, string>), ...(token && { 'x-holdfast-token': token }) };
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  const signal = init.signal ? AbortSignal.any([init.signal, limit]) : limit;
  const response = await fetch(path, { ...init, headers, signal }).catch((error: Error) => {
    if (init.signal?.aborted) throw error;
    throw new Problem('The service cannot be reached.', { operation });
  });
  const text = await response.text();
  const body = parsed(text);
  if (response.ok && body !== undefined) return body;
  const { code, detail, message, retryAfterMs } = (body ?? {}) as Record<string, string> & { retryAfterMs?: number };
  throw new Problem(detail ?? message ?? `The answer was ${response.status}.`, {
    operation,
    status: response.status,
    code,
    retryAfterMs,
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const requestOf = (operation: Operation, namespace?: string) => ({
  method: READS.test(operation) ? 'GET' : 'POST',
  path: new URL(routeOf(operation, namespace), `${location.origin}/v1/`).pathname,
});

/** Sends one try of a call. @throws Problem; the reason of the signal */
export async function call<O extends Operation>(
  operation: O,
  request: RequestOf<O>,
  signal?: AbortSignal,
): Promise<AnswerOf<O>> {
  const { method, path } = requestOf(operation);
  const init: RequestInit = { method, ...(signal && { signal }) };
  const answer =
    method === 'GET'
      ? await send(`${path}?${new URLSearchParams(JSON.parse(JSON.stringify(request)))}`, init, operation)
      : await send(
          path,
          { ...init, headers: { 'content-type': 'application/json' }, body: JSON.stringify(request) },
          operation,
        );
  return answer as AnswerOf<O>;
}

export const readSettings = (signal?: AbortSignal) =>
  send('/console/settings', signal ? { signal } : {}) as Promise<Settings>;

/** The rows of a list. */
export interface Listing<Row> {
  rows: Row[];
  /** True if the list has more rows than these. */
  more: boolean;
}

/** How many pages of a thousand rows are read at most, because the deployment pays for each row at each refresh. */
const MAX_PAGES = 5;

type Page = { nextCursor: string | null };

/** Makes a function that reads the first pages of a list. @param field the field of a page that contains its rows */
export const reader =
  <Row>(operation: Operation, field: string) =>
  async (signal: AbortSignal): Promise<Listing<Row>> => {
    const rows: Row[] = [];
    let cursor: string | null = null;
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const page = (await call(operation, { limit: 1000, ...(cursor && { cursor }) } as never, signal)) as Page;
      rows.push(...((page as unknown as Record<string, Row[]>)[field] ?? []));
      cursor = page.nextCursor;
      if (cursor === null) break;
    }
    return { rows, more: cursor !== null };
  };

interface Known {
  /** The answer of `whoami`, if there is one. */
  who: Whoami | undefined;
  settings: Settings | undefined;
}

/** The permission that the caller needs for a call, for people. */
export function permissionFor(operation: Operation, { who, settings }: Known): string {
  const known = who?.calls.find((one) => one.operation === operation)?.permission;
  const { method, path } = requestOf(operation, settings?.namespace);
  if (known && who?.authorizedBy === 'jwt') return `the scope ${known}`;
  return known ?? `execute-api:Invoke on <api>/$default/${method}${path}`;
}
