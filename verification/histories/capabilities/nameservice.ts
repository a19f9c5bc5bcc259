import type { Answer } from '../../../test/support/stack/adapters.ts';
import type { Caller } from '../caller.ts';
import { type Capability, stuck } from '../capability.ts';
import { type Entry, isUnknown, saysNothing, type Violation } from '../history.ts';
import { linearize } from '../linearizability.ts';
import { CONCERNS, nameModel, nameOperations } from './nameservice.model.ts';

const ALIASES = ['a0', 'a1'];

/** Longer than any two clocks stand apart, even beyond the bound. */
const LONGEST_REPAIR_MS = 240_000;

interface Pointer {
  address: string | null;
  t: number;
}

/** What a caller was last answered about an alias. */
interface Known {
  commit: Pointer;
  index: Pointer;
  status: { state: string; v: number };
  config: { v: number };
  retracted: boolean;
}

interface Memory {
  records: Map<string, Known>;
  /** A publish whose outcome the caller does not know. */
  pending: Readonly<Record<string, unknown>> | undefined;
}

const memoryOf = (caller: Caller) =>
  caller.memory<Memory>('nameservice', (previous) => ({ records: new Map(), pending: previous?.pending }));

export const nameservice: Capability = {
  name: 'nameservice',

  async act(caller) {
    const { pending, records } = memoryOf(caller);
    if (pending && caller.random() < 0.6) return publish(caller, pending);
    const alias = `${caller.world.unique}${caller.pick(ALIASES)}:main`;
    if (caller.random() < 0.25) return readAlias(caller, alias);
    const known = records.get(alias);
    const id = Math.floor(caller.random() * 1e9).toString(36);
    await publish(caller, { alias, requestId: id, ...operation(caller, known, id) });
  },

  others: [{ name: 'administrator of nameservice', steps: 3, share: 0.3, act: takeBack }],

  async settle(caller) {
    // After a repair, writes by clocks that are behind it are refused for a while.
    if (caller.world.entries.some(({ call }) => call === 'repairNames')) await caller.sleep(LONGEST_REPAIR_MS);
    for (const name of ALIASES) {
      const alias = `${caller.world.unique}${name}:main`;
      const { entries } = caller.world;
      const exists = (await caller.call('readNames', { alias }))?.outcome === 'ok';
      // A NotFound is not a failure here, so the call is not recorded.
      if (!exists) entries.pop();
      const record = exists ? (entries.at(-1)?.body as unknown as Known) : undefined;
      const address = `${alias} afterwards`;
      await caller.call('publish', {
        op: 'compareAndSetRef',
        alias,
        requestId: address,
        ref: 'commit',
        expected: record?.commit ?? null,
        next: { address, t: (record?.commit.t ?? 0) + 1 },
      });
      await caller.call('readNames', { alias });
    }
  },

  check(history) {
    const entries = history.filter(({ call }) => ['publish', 'readNames', 'repairNames'].includes(call));
    const aliases = [...new Set(entries.map(({ input }) => String(input.alias)))];
    return [
      ...aliases.flatMap((alias) => {
        const ofAlias = entries.filter(({ input }) => input.alias === alias);
        return [...neverDown(ofAlias), ...registersAgree(ofAlias)];
      }),
      ...stuck(entries, 'no alias is stuck'),
    ];
  },
};

/** An administrator takes something back: a ref, a status or a config; or removes an alias, or lets it stand again. */
async function takeBack(caller: Caller): Promise<void> {
  const alias = `${caller.world.unique}${caller.pick(ALIASES)}:main`;
  await readAlias(caller, alias);
  const known = memoryOf(caller).records.get(alias);
  if (!known) return;
  const input = { alias, ...(known.retracted ? afterRetract(caller, known) : setBack(caller, known)) };
  // What is to be removed must be retracted first.
  await caller.call(input.op === 'retract' ? 'publish' : 'repairNames', input);
}

function setBack(caller: Caller, { commit, index, status, config }: Known) {
  const id = Math.floor(caller.random() * 1e9).toString(36);
  const most = (counter: number) => Math.floor(caller.random() * (counter + 1));
  const resetRef = (ref: 'commit' | 'index', expected: Pointer) => {
    const t = most(expected.t);
    return { op: 'resetRef', ref, expected, next: { address: t === 0 ? null : `address back to ${t}`, t } };
  };
  const payload = { defaultContextAddress: `context ${id}` };
  return caller.pick([
    () => resetRef('commit', commit),
    () => resetRef('index', index),
    () => ({ op: 'resetStatus', expected: status, next: { state: `state ${id}`, v: most(status.v) } }),
    () => ({ op: 'resetConfig', expected: { v: config.v }, next: { v: most(config.v), payload } }),
    () => ({ op: 'retract' }),
  ])();
}

const afterRetract = (caller: Caller, { commit, index, status, config }: Known) =>
  caller.random() < 0.5
    ? { op: 'unretract', expected: { kind: 'ledger' } }
    : { op: 'purge', expected: { kind: 'ledger', commit, index, status, config: { v: config.v } } };

function operation(caller: Caller, known: Known | undefined, id: string): Readonly<Record<string, unknown>> {
  const { commit, index, status, config } = known ?? {
    commit: { address: null, t: 0 },
    index: { address: null, t: 0 },
    status: { state: 'ready', v: 1 },
    config: { v: 0 },
  };
  const near = (t: number) => Math.max(0, t + Math.floor(caller.random() * 4) - 1);
  // An index may be set back to what it was, at one t.
  const address = caller.random() < 0.3 ? `address ${caller.pick(['x', 'y'])}` : `address ${id}`;
  const ref = caller.pick(['commit', 'commit', 'index'] as const);
  const at = ref === 'commit' ? commit : index;
  const choices = [
    () => ({ op: 'publishCommit', address, t: near(commit.t) }),
    () => ({ op: 'publishIndex', address, t: near(index.t), allowEqual: caller.random() < 0.5 }),
    () => ({ op: 'compareAndSetRef', ref, expected: known ? at : null, next: { address, t: near(at.t) + 1 } }),
    () => ({ op: 'compareAndSetRef', ref, expected: known ? at : null, next: { address, t: near(at.t) + 1 } }),
    // Indexed again at one t, now by one caller and now by another.
    () => ({ op: 'publishIndex', address, t: Math.max(1, index.t), allowEqual: true }),
    () => ({ op: 'publishIndex', address, t: Math.max(1, index.t), allowEqual: true }),
    () => ({ op: 'compareAndSetRef', ref: 'index', expected: known ? index : null, next: { address, t: index.t } }),
    () => ({ op: 'fastForwardCommit', address, t: near(commit.t) }),
    () => ({ op: 'pushStatus', expected: status, next: { state: `state ${id}`, v: near(status.v) + 1 } }),
    () => ({
      op: 'pushConfig',
      expected: { v: config.v },
      next: { v: near(config.v) + 1, payload: { defaultContextAddress: `context ${id}` } },
    }),
    () => (caller.random() < 0.2 ? { op: 'retract' } : { op: 'initLedger' }),
  ];
  return known || caller.random() < 0.3 ? caller.pick(choices)() : { op: 'initLedger' };
}

async function readAlias(caller: Caller, alias: string): Promise<void> {
  const answer = await caller.call('readNames', { alias });
  if (answer?.outcome === 'ok') note(caller, alias, answer.body);
}

function note(caller: Caller, alias: string, record: Record<string, unknown>): void {
  const { commit, index, status, config, retracted } = record;
  const { state, v } = status as Known['status'];
  const known = { commit, index, status: { state, v }, config, retracted } as Known;
  memoryOf(caller).records.set(alias, known);
}

async function publish(caller: Caller, input: Readonly<Record<string, unknown>>): Promise<void> {
  memoryOf(caller).pending = input; // written down before it is sent
  const answer = await caller.call('publish', input);
  if (!answer || answer.outcome === 'OutcomeUnknown') return;
  // Now and then, a caller repeats a publish although it knows the outcome.
  memoryOf(caller).pending = caller.random() < 0.1 ? input : undefined;
  learn(caller, String(input.alias), input, answer);
}

/** Learns the record of an alias from the answer, or by a read. */
function learn(caller: Caller, alias: string, input: Readonly<Record<string, unknown>>, answer: Answer): void {
  const { records } = memoryOf(caller);
  const known = records.get(alias);
  if (answer.outcome === 'ok' && input.op === 'initLedger') {
    note(caller, alias, answer.body.current as Record<string, unknown>);
    return;
  }
  const current =
    answer.outcome === 'ok' ? answer.body.current : answer.outcome === 'Conflict' ? answer.body.actual : null;
  if (!known || !current) return;
  const { state, v } = current as { state: string; v: number };
  if (input.op === 'pushStatus') known.status = { state, v };
  else if (input.op === 'pushConfig') known.config = { v };
  else if (input.op === 'publishCommit' || input.op === 'fastForwardCommit' || input.ref === 'commit')
    known.commit = current as Pointer;
  else if (input.op === 'publishIndex' || input.ref === 'index') known.index = current as Pointer;
}

/** A read that follows another one does not show a lower t. */
function neverDown(entries: readonly Entry[]): Violation[] {
  const reads = entries.filter(({ call, outcome }) => call === 'readNames' && outcome === 'ok');
  for (const earlier of reads)
    for (const later of reads)
      for (const ref of ['commit', 'index'] as const) {
        if (!earlier.answeredAt || earlier.answeredAt.moment > later.calledAt.moment) continue;
        if (entries.some((entry) => mayBeSetBack(entry, ref, later))) continue;
        const [before, after] = [tIn(earlier, ref), tIn(later, ref)];
        if (after < before)
          return [
            {
              promise: 'commit_t and index_t never go down',
              detail: `${ref} t ${after} after ${before}`,
              entries: [earlier, later],
            },
          ];
      }
  return [];
}

/** Whether an administrator may have set the ref back between two reads, or removed its alias. */
const mayBeSetBack = ({ call, input, calledAt }: Entry, ref: string, later: Entry) =>
  call === 'repairNames' &&
  (input.ref === ref || input.op === 'purge') &&
  (later.answeredAt?.moment ?? 0) > calledAt.moment;

const tIn = ({ body = {} }: Entry, ref: 'commit' | 'index') => (body[ref] as Pointer).t;

/** Refs, status and config, each answer as one register with compare-and-set. */
function registersAgree(entries: readonly Entry[]): Violation[] {
  const known = entries.filter((entry) => !(entry.call === 'readNames' && (isUnknown(entry) || saysNothing(entry))));
  return CONCERNS.flatMap((concern) => {
    const verdict = linearize(nameModel(concern), nameOperations(known, concern));
    if (verdict.linearizable) return [];
    const explained = verdict.explained.map(({ entry }) => entry.id);
    return [
      {
        promise: 'refs, status and config are linearizable, and stale publishes change nothing',
        detail: `no order explains what was answered about ${concern}; the longest that does begins with calls ${explained.join(' ')}`,
        entries: verdict.stuckAt.map(({ entry }) => entry),
      },
    ];
  });
}
