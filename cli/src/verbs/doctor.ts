import type { components } from '../../../clients/typescript/src/contract.ts';
import { isHoldfastError } from '../../../clients/typescript/src/errors.ts';
import { READS, ROUTES } from '../../../clients/typescript/src/routes.ts';
import { type AnswerOf, type Operation, type RequestOf, routeOf } from '../../../clients/typescript/src/transport.ts';
import manifest from '../../package.json' with { type: 'json' };
import { EXIT } from '../exit-codes.ts';
import { exitCodeOf, messageOf } from '../failure.ts';
import { lightFetch } from '../http.ts';
import type { Output } from '../output.ts';
import type { Service } from '../service.ts';
import type { Settings } from '../settings.ts';
import type { Verb } from '../verb.ts';
import { agoText, nameOf } from './texts.ts';

type KeyPage = components['schemas']['KeyPage'];

/** How far the clock may be off, in milliseconds: the `Date` of a response is in whole seconds, and the response takes time. */
const MAX_OFFSET_MS = 2000;

/** The doctor reports a transient error, instead of trying again. */
const SINGLE_TRY = { timeoutMs: 0 };

type Verdict = 'ok' | 'note' | 'failed';

class Findings {
  readonly #output: Output;
  exitCode: number = 0;

  constructor(output: Output) {
    this.#output = output;
  }

  say(check: string, verdict: Verdict, detail: string): void {
    if (this.#output.isJson) this.#output.json({ check, verdict, detail });
    else this.#output.line(`${verdict.padEnd(6)}  ${check}: ${detail}`);
  }

  /** Reports a check that found no fault, but only to programs: for people, these lines would hide the others. */
  sayToProgram(check: string, detail: string): void {
    if (this.#output.isJson) this.say(check, 'ok', detail);
  }

  fail(check: string, detail: string, exitCode: number): void {
    this.say(check, 'failed', detail);
    this.exitCode ||= exitCode;
  }
}

export const doctor: Verb = {
  summary: 'check the connection, the permissions, the clock, the versions, the report and the lines',
  usage: '',
  words: [0, 0],
  noTimeout: true,
  options: {},
  notes: `The configuration file is ~/.config/holdfast/config.json, for example:
  {"default": "prod", "profiles": {"prod": {"endpoint": "https://...", "awsProfile": "ops", "region": "eu-west-1"}}}`,
  example: 'holdfast doctor',
  async run({ output, connect, settings }) {
    const findings = new Findings(output);
    let date: string | undefined;
    const dated = (async (...request: Parameters<typeof fetch>) => {
      const response = await lightFetch(...request);
      date = (response.headers as unknown as Record<string, string>).date ?? date;
      return response;
    }) as typeof fetch;
    let known: Settings;
    let service: Service;
    try {
      known = settings();
      service = connect({ fetch: dated, onRetry: undefined });
    } catch (error) {
      findings.fail('configuration', messageOf(error), exitCodeOf(error));
      return findings.exitCode;
    }
    findings.say('endpoint', 'ok', known.endpoint);
    findings.say('namespace', 'ok', known.namespace ?? 'none: the calls are for the whole deployment');
    let check = 'credentials';
    try {
      findings.say(check, 'ok', await credentialsText(known));
      check = 'answer';
      const startedAt = Date.now();
      const me = await whoami(service);
      const tookMs = Date.now() - startedAt;
      findings.say(check, 'ok', `after ${tookMs} ms`);
      findings.say('identity', 'ok', identityText(me));
      clock(findings, date, startedAt + tookMs / 2);
      const { version = 'unknown' } = me;
      const verdict = version === manifest.version ? 'ok' : 'note';
      findings.say('versions', verdict, `holdfast ${manifest.version}, deployment ${version}`);
      const allowed = await permissions(findings, service, { calls: me.calls ?? [], namespace: known.namespace });
      if (allowed.has('readInFlight')) await commits(findings, service);
      if (allowed.has('readExpired')) await report(findings, service);
      if (allowed.has('readLeases')) await oldestWaiter(findings, service);
    } catch (error) {
      findings.fail(check, messageOf(error, known.endpoint), exitCodeOf(error));
    }
    return findings.exitCode;
  },
};

/** Where the credentials come from. @throws Failure if there are none */
async function credentialsText({ token, findCredentials }: Settings): Promise<string> {
  if (token) return 'HOLDFAST_TOKEN';
  return findCredentials ? (await findCredentials()).source : 'none: the endpoint is on this machine';
}

type Me = Partial<AnswerOf<'whoami'>>;

/** Reads who the caller is. A caller without the permission for `whoami` may have that for `readHealth`, or for neither. */
async function whoami(service: Service): Promise<Me> {
  const ask = (operation: 'whoami' | 'readHealth') =>
    service.call(operation, {}, SINGLE_TRY).catch((error) => {
      if (!isHoldfastError(error, 'Refused') || error.status === 401) throw error;
      return undefined;
    });
  return (await ask('whoami')) ?? (await ask('readHealth')) ?? {};
}

function identityText({ principal, authorizedBy, namespaces }: Me): string {
  const name = principal ?? (authorizedBy === 'nobody' ? 'nobody: the API knows no callers' : 'unknown');
  return namespaces ? `${name}, for the namespaces ${namespaces.join(', ') || '(none)'}` : name;
}

function clock(findings: Findings, date: string | undefined, at: number): void {
  // The header names a whole second, of which half has passed on average.
  const offsetMs = at - (Date.parse(date ?? '') + 500);
  const detail = `${Math.abs(Math.round(offsetMs / 100) / 10)} s ${offsetMs > 0 ? 'ahead of' : 'behind'} the answer's Date`;
  if (Number.isNaN(offsetMs)) findings.say('clock', 'note', 'the answer has no Date');
  else if (Math.abs(offsetMs) <= MAX_OFFSET_MS) findings.say('clock', 'ok', detail);
  else findings.fail('clock', detail, EXIT.refused);
}

/**
 * Checks that all clients commit with the same protocol. Clients that use records of the commits table write without a condition, and the native protocol leaves
 * no record, so the two kinds of clients could overwrite each other's commits.
 */
async function commits(findings: Findings, service: Service): Promise<void> {
  let cursor: string | null = null;
  do {
    const page: AnswerOf<'readInFlight'> = await service.call(
      'readInFlight',
      { ...(cursor && { cursor }) },
      SINGLE_TRY,
    );
    if (page.protocol === 'dynamo') return;
    const thirdParty = page.commits.find(({ commitId }) => commitId === null);
    if (thirdParty) {
      const detail = `another client commits ${thirdParty.path} by a record, which commitProtocol=native does not respect: see docs/commits.md`;
      findings.fail('commits', detail, EXIT.refused);
      return;
    }
    cursor = page.nextCursor;
  } while (cursor);
  findings.say('commits', 'ok', 'commitProtocol=native, and no other client commits by a record');
}

/** From this age, a report or a waiter is worth a note, in milliseconds. */
const OLD_MS = 3_600_000;

const verdictOf = (at: string): Verdict => (Date.now() - Date.parse(at) > OLD_MS ? 'note' : 'ok');

async function report(findings: Findings, service: Service): Promise<void> {
  const schedule = 'reportSchedule is 15 minutes by default';
  try {
    const { finishedAt } = await service.call('readExpired', { limit: 1 }, SINGLE_TRY);
    if (finishedAt) findings.say('report', verdictOf(finishedAt), `${agoText(finishedAt)} old (${schedule})`);
  } catch (error) {
    findings.say('report', 'note', `${messageOf(error)} (${schedule})`);
  }
}

/** Finds the waiter that has waited longest in the five longest lines, because reading every line would cost too much. */
async function oldestWaiter(findings: Findings, service: Service): Promise<void> {
  const check = 'oldest waiter';
  try {
    const { leases } = (await service.call('readLeases', { sort: 'waiting', limit: 5 }, SINGLE_TRY)) as KeyPage;
    const keys = leases.filter(({ waiting }) => waiting > 0);
    const lines = await Promise.all(
      keys.map(({ key }) => service.readKey(key, { waiters: true, limit: 10 }, SINGLE_TRY)),
    );
    const all = lines.flatMap(({ key, waiters = [] }) => waiters.map((waiter) => ({ key, ...waiter })));
    const [oldest] = all.sort((one, other) => (one.parkedAt < other.parkedAt ? -1 : 1));
    if (oldest) findings.say(check, verdictOf(oldest.parkedAt), waitText(oldest));
    else findings.say(check, 'ok', 'none');
  } catch (error) {
    findings.say(check, 'note', messageOf(error));
  }
}

const waitText = ({ key, holder, parkedAt }: { key: string; holder: string; parkedAt: string }): string =>
  `${nameOf(holder)} has waited ${agoText(parkedAt)} for ${key}`;

/** Reports which calls the caller may not send. @returns the calls that it may send */
async function permissions(
  findings: Findings,
  service: Service,
  { calls, namespace }: { calls: AnswerOf<'whoami'>['calls']; namespace: string | undefined },
): Promise<Set<Operation>> {
  const allowed = new Set<Operation>();
  const operations = Object.keys(ROUTES) as Operation[];
  for (const operation of operations) {
    const listed = calls.find((call) => call.operation === operation);
    const may = listed?.allowed ?? (await probe(service, operation));
    const check = `call ${operation}`;
    const { pathname } = new URL(routeOf(operation, namespace), 'http://api/v1/');
    const route = `${READS.test(operation) ? 'GET' : 'POST'} ${pathname}`;
    if (may === 'absent') findings.say(check, 'note', 'the deployment has no such call');
    else if (!may) findings.say(check, 'note', `refused: ${listed?.permission ?? route} is missing`);
    else findings.sayToProgram(check, route);
    if (may === true) allowed.add(operation);
  }
  if (allowed.size > 0) findings.say('calls', 'ok', `${allowed.size} of ${operations.length} are allowed`);
  else findings.fail('permissions', 'every call is refused', EXIT.forbidden);
  return allowed;
}

/** True if the caller may send a call. The request has an unknown field, so a function that runs refuses the request and changes nothing. */
async function probe(service: Service, operation: Operation): Promise<boolean | 'absent'> {
  try {
    await service.call(operation, { doctor: 'probe' } as unknown as RequestOf<typeof operation>, SINGLE_TRY);
    return true;
  } catch (error) {
    if (isHoldfastError(error, 'InvalidRequest')) return true;
    if (isHoldfastError(error, 'Refused')) return error.status === 404 && 'absent';
    if (isHoldfastError(error, 'Forbidden')) return false;
    throw error;
  }
}
