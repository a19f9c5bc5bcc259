import { cleaningsOf } from './capabilities/expiry.model.ts';
import { keysOf, LEASE_CALLS, LEASE_KEYS } from './capabilities/leases.ts';
import { concerns, isPurge } from './capabilities/nameservice.model.ts';
import type { Entry } from './history.ts';
import type { History } from './world.ts';

/** One call on one object: what the checker in verification/porcupine reads. */
interface Operation {
  type: 'operation';
  object: 'lease' | 'commit' | 'commitRef' | 'indexRef';
  key: string;
  id: number;
  client: string;
  name: string;
  /** Moments, which order all calls and answers of a history. */
  called: number;
  answered: number | null;
  outcome: string;
  input: Readonly<Record<string, unknown>>;
  output: Readonly<Record<string, unknown>>;
  struck: boolean;
  strays: number;
}

/** The leases, commits and refs of a history as JSON lines: one for the history, and one for each call on an object. */
export function asJsonLines({ plan, entries }: History): string {
  const { withinBound, spreadMs, protocol, foreignLeases, foreignCommits, sweeps } = plan.facts;
  const facts = { withinBound, spreadMs, protocol, foreignLeases, foreignCommits, sweeps };
  const operations = [...ofLeases(entries), ...ofCommits(entries), ...ofRefs(entries)];
  return [{ type: 'history', seed: plan.seed, ...facts }, ...operations]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
}

function ofLeases(entries: readonly Entry[]): Operation[] {
  const calls = entries.filter(({ call }) => LEASE_CALLS.has(call));
  return keysOf(calls, LEASE_KEYS).flatMap((key) =>
    [...calls.filter(({ input }) => input.key === key), ...cleaningsOf(entries, key)].map((entry) =>
      operation('lease', key, entry),
    ),
  );
}

function ofCommits(entries: readonly Entry[]): Operation[] {
  const calls = ['commit', 'readCommit', 'resetFence', 'rustPut'];
  return entries
    .filter(({ call }) => calls.includes(call))
    .map((entry) => operation('commit', String(entry.input.path), entry));
}

function ofRefs(entries: readonly Entry[]): Operation[] {
  const calls = ['publish', 'repairNames', 'readNames'];
  // A purge lets late writes land twice. The checker here has a rule for that, and Porcupine's model none.
  const purged = new Set(entries.filter(isPurge).map(({ input }) => input.alias));
  return (['commit', 'index'] as const).flatMap((concern) =>
    entries
      .filter((entry) => calls.includes(entry.call) && !purged.has(entry.input.alias) && concerns(entry, concern))
      .map((entry) => operation(`${concern}Ref`, String(entry.input.alias), entry)),
  );
}

function operation(object: Operation['object'], key: string, entry: Entry): Operation {
  const { id, actor, call, calledAt, answeredAt, outcome = '', input, body = {}, faults, strays } = entry;
  return {
    type: 'operation',
    object,
    key,
    id,
    client: actor,
    name: call,
    called: calledAt.moment,
    answered: answeredAt?.moment ?? null,
    outcome,
    input,
    output: body,
    struck: faults.length > 0,
    strays,
  };
}
