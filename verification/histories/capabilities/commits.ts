import { PutObjectCommand } from '@aws-sdk/client-s3';
import type { Answer } from '../../../test/support/stack/adapters.ts';
import { ObjectStoreWriter } from '../../../test/support/worlds/object-store.ts';
import type { Caller, WorldFacts } from '../caller.ts';
import { AFTERWARDS, type Capability } from '../capability.ts';
import { BEGIN } from '../clocks.ts';
import { type Entry, isUnknown, saysNothing, type Violation } from '../history.ts';
import { linearize } from '../linearizability.ts';
import { CLOCK_SKEW_MS, COMMIT_TIMEOUT_MS, MAX_CLOCK_SKEW_RATE } from '../service.ts';
import { currentThread } from '../simulation.ts';
import { commitIdOf, commitModel, commitOperations, UNNAMED } from './commits.model.ts';
import { grantsOf, LEASE_KEYS } from './leases.ts';

/** Every write of the first path has a fence of the first lease. Third-party writers share the other path. */
const FENCED = 'p0';
const FREE = 'p1';
const PATHS = [FENCED, FREE];
/** A fence above that of every grant, but less than a day ahead of every clock. */
const HIGHEST_TOKEN = BEGIN + 12 * 60 * 60 * 1000;
/** How long a dead writer's record is in the way, from the first time that it is seen. Clocks may differ about that. */
const MAX_WAIT_MS = COMMIT_TIMEOUT_MS * MAX_CLOCK_SKEW_RATE + 3 * CLOCK_SKEW_MS;

interface Memory {
  /** The last ETag that this caller was answered, by path. */
  etags: Map<string, string | null>;
  /** A commit whose outcome the caller does not know. */
  pending: Readonly<Record<string, unknown>> | undefined;
}

/** The answer to a read. */
interface Seen {
  etag?: string | null;
  fence?: { key: string; token: number } | null;
}

const memoryOf = (caller: Caller) =>
  caller.memory<Memory>('commits', (previous) => ({ etags: new Map(), pending: previous?.pending }));

export const commits: Capability = {
  name: 'commits',

  async act(caller) {
    const { pending, etags } = memoryOf(caller);
    if (pending && caller.random() < 0.6) return commit(caller, pending);
    const name = caller.pick(PATHS);
    const path = caller.world.prefix + name;
    if (!etags.has(path) || caller.random() < 0.5) await read(caller, path);
    const etag = memoryOf(caller).etags.get(path) ?? null;
    const id = Math.floor(caller.random() * 1e9).toString(36);
    const fence = name === FENCED && caller.random() < 0.9 ? { fence: fenceOf(caller) } : {};
    const body = `${path} ${id}`;
    const source = caller.random() < 0.15 ? await upload(caller, body) : undefined;
    return commit(caller, {
      path,
      ...(etag === null ? { ifNoneMatch: '*' } : { ifMatch: etag }),
      body,
      ...(source !== undefined && { source }),
      // If the call has no commit id, the service makes one and answers it.
      ...(caller.random() < 0.85 && { commitId: id }),
      ...fence,
      ...(caller.random() < 0.2 && { waitSeconds: 1 + Math.floor(caller.random() * 5) }),
    });
  },

  others: [{ name: 'administrator of commits', steps: 3, share: 0.3, act: replaceFence }],

  async actForeign(caller) {
    const { service, foreignClock, prefix, simulation, facts } = caller.world;
    const path = prefix + FREE;
    const dies = caller.strikes('foreignDeath', 0.25);
    const stallMs = caller.random() < 0.3 ? caller.random() * 15_000 : 0;
    const writer = new ObjectStoreWriter({
      table: service.commits,
      bucket: service.bucket,
      // The crate polls slowly here, because each poll costs the test a request.
      clock: { now: foreignClock.now, sleep: (ms) => foreignClock.sleep(Math.max(ms, 2500)) },
      timeoutMs: COMMIT_TIMEOUT_MS,
      maxClockSkewRate: MAX_CLOCK_SKEW_RATE,
      // The crate sends an unanswered PUT again unless told not to, and that one overwrites what came in between.
      clients: facts.foreignRetries ? service : { dynamodb: service.dynamodb, s3: service.s3Once },
      beforeOperation: async () => {
        if (dies) {
          currentThread()?.die();
          await new Promise(() => {});
        }
        await simulation.sleep(stallMs);
      },
    });
    const etags = caller.memory<{ last?: string | undefined }>('rust commits', () => ({}));
    const body = `rust ${path} ${Math.floor(caller.random() * 1e9).toString(36)}`;
    const ifMatch = etags.last;
    const input = { path, ...(ifMatch ? { ifMatch } : { ifNoneMatch: '*' }), body };
    const put = () => (ifMatch ? writer.update(path, body, ifMatch) : writer.create(path, body));
    const result = await caller.foreign('rustPut', input, put);
    if (result && 'etag' in result) etags.last = result.etag;
    else
      etags.last = caller.world.entries.findLast(({ input, body }) => input.path === path && body?.etag)?.body?.etag as
        | string
        | undefined;
  },

  async settle(caller) {
    const { entries, prefix } = caller.world;
    const open = entries.filter(
      (entry) => isWrite(entry) && isUnknown(entry) && !commitIdOf(entry).startsWith(UNNAMED),
    );
    const ids = new Map(open.map((entry) => [commitIdOf(entry), entry]));
    for (const [commitId, { call, input }] of ids)
      await untilDecided(caller, { ...input, commitId, waitSeconds: 0 }, call);
    for (const name of PATHS) {
      const path = prefix + name;
      await read(caller, path);
      const etag = memoryOf(caller).etags.get(path) ?? null;
      await untilDecided(caller, {
        path,
        ...(etag === null ? { ifNoneMatch: '*' } : { ifMatch: etag }),
        body: `${path} ${AFTERWARDS}`,
        commitId: AFTERWARDS,
        ...(name === FENCED && { fence: { key: prefix + LEASE_KEYS[0], token: HIGHEST_TOKEN } }),
      });
      await read(caller, path);
    }
  },

  check(history, facts) {
    const entries = history.filter(({ call }) => ['commit', 'readCommit', 'resetFence', 'rustPut'].includes(call));
    const paths = [...new Set(entries.map(({ input }) => String(input.path)))];
    return paths.flatMap((path) => {
      const ofPath = entries.filter(({ input }) => input.path === path);
      return [
        ...oneWinner(ofPath),
        ...staleFences(ofPath),
        ...repeatsSaySo(ofPath),
        ...objectAgrees(ofPath, facts),
        ...decided(ofPath, facts),
      ];
    });
  },
};

/** The commits of the service's own writers. */
const isWrite = ({ call }: Entry) => call === 'commit' || call === 'resetFence';

/** An administrator lifts the fence of the fenced path, or takes it back to an earlier token. */
async function replaceFence(caller: Caller): Promise<void> {
  const path = caller.world.prefix + FENCED;
  const seen = await caller.call('readCommit', { path });
  const { etag, fence: expectedFence } = (seen?.outcome === 'ok' ? seen.body : {}) as Seen;
  if (!etag || !expectedFence) return;
  const { key, token } = expectedFence;
  const fence = caller.random() < 0.5 || token === 0 ? null : { key, token: Math.floor(caller.random() * token) };
  const commitId = `reset-${Math.floor(caller.random() * 1e9).toString(36)}`;
  const input = { path, ifMatch: etag, expectedFence, fence, commitId };
  const answer = await caller.call('resetFence', input);
  if (!answer || answer.outcome === 'OutcomeUnknown') await caller.call('resetFence', input);
}

/** A fence of the lease, present or long ended. A caller that never had the lease takes any number. */
function fenceOf(caller: Caller): { key: string; token: number } {
  const key = caller.world.prefix + LEASE_KEYS[0];
  const grants = grantsOf(caller).filter((grant) => grant.key === key);
  const grant = caller.random() < 0.5 ? grants.at(-1) : caller.pick(grants.length > 0 ? grants : [undefined]);
  return { key, token: grant?.fence ?? 1 + Math.floor(caller.random() * 20) };
}

async function read(caller: Caller, path: string): Promise<void> {
  const answer = await caller.call('readCommit', { path });
  if (answer?.outcome === 'ok') memoryOf(caller).etags.set(path, answer.body.etag as string | null);
}

/** Uploads the bytes of a commit. @returns the id of the upload, if the caller knows that the bytes have arrived */
async function upload(caller: Caller, body: string): Promise<string | undefined> {
  const staged = await caller.call('stageUpload', {});
  if (staged?.outcome !== 'ok') return undefined;
  const { uploadId, url } = staged.body as { uploadId: string; url: string };
  const { s3, bucket } = caller.world.service;
  // The emulator would compare the signature of the URL with its own clock.
  const Key = decodeURIComponent(new URL(url).pathname).replace(`/${bucket}/`, '');
  const put = () => s3.send(new PutObjectCommand({ Bucket: bucket, Key, Body: body }));
  return (await caller.foreign('upload', { uploadId }, put)) && uploadId;
}

async function commit(caller: Caller, input: Readonly<Record<string, unknown>>): Promise<void> {
  memoryOf(caller).pending = input; // written down before it is sent
  const answer = await send(caller, input);
  const memory = memoryOf(caller);
  if (!answer) return;
  const { outcome, body } = answer;
  const { commitId } = (body.retryWith ?? {}) as { commitId?: string };
  if (outcome === 'OutcomeUnknown') memory.pending = { ...input, commitId };
  // Now and then, a caller repeats a commit although it knows the outcome.
  else memory.pending = caller.random() < 0.1 && body.commitId ? { ...input, commitId: body.commitId } : undefined;
  if (outcome === 'ok') memory.etags.set(String(input.path), (body.etag ?? body.currentEtag) as string);
  if (outcome === 'PreconditionFailed') memory.etags.set(String(input.path), body.etag as string | null);
}

/** What the checker must know of a commit: its bytes, even if they were uploaded before. */
function send(caller: Caller, input: Readonly<Record<string, unknown>>, call = 'commit'): Promise<Answer | undefined> {
  const { body, ...others } = input;
  return input.source === undefined ? caller.call(call, input) : caller.call(call, others, { body });
}

/** Asks again as long as a foreign record is in the way, and no longer than the longest of them may be. */
async function untilDecided(caller: Caller, input: Readonly<Record<string, unknown>>, call = 'commit'): Promise<void> {
  const { simulation } = caller.world;
  for (const since = simulation.now; ; ) {
    const answer = await send(caller, input, call);
    if (answer?.outcome !== 'CommitInProgress' || simulation.now - since > MAX_WAIT_MS) return;
    await caller.sleep(Number(answer.body.retryAfterMs));
  }
}

/** For each ETag of a path, at most one commit is answered as the one that replaced it. */
export function oneWinner(entries: readonly Entry[]): Violation[] {
  const winners = new Map<unknown, Entry>();
  for (const entry of entries) {
    if (entry.outcome !== 'ok' || (!isWrite(entry) && entry.body?.etag === undefined) || entry.call === 'readCommit')
      continue;
    const precondition = entry.input.ifMatch ?? '*';
    const other = winners.get(precondition);
    if (other && (entry.foreign || other.foreign || commitIdOf(other) !== commitIdOf(entry)))
      return [
        {
          promise: 'one winner for each precondition',
          detail: `two replaced ${precondition}`,
          entries: [other, entry],
        },
      ];
    winners.set(precondition, entry);
  }
  return [];
}

/**
 * Once a commit is answered as landed under a fence, no later call lands under an older fence, unless an administrator may have
 * replaced the fence in between.
 */
export function staleFences(entries: readonly Entry[]): Violation[] {
  const fenced = entries.filter(({ call, outcome, body }) => call === 'commit' && outcome === 'ok' && !body?.repeated);
  const tokenOf = ({ input }: Entry) => (input.fence as { token: number } | undefined)?.token ?? -1;
  // A repeated commit may have landed with its first call.
  const first = fenced.filter(
    (entry) => !entries.some((other) => other !== entry && commitIdOf(other) === commitIdOf(entry)),
  );
  for (const newer of fenced)
    for (const older of first)
      if (
        newer.answeredAt &&
        newer.answeredAt.moment < older.calledAt.moment &&
        tokenOf(older) < tokenOf(newer) &&
        !entries.some((entry) => mayReplaceFence(entry, newer, older))
      )
        return [
          {
            promise: 'no commit with a stale fence lands after a newer one',
            detail: `token ${tokenOf(older)} after ${tokenOf(newer)}`,
            entries: [newer, older],
          },
        ];
  return [];
}

const mayReplaceFence = (entry: Entry, newer: Entry, older: Entry): boolean => {
  const { call, outcome, calledAt, answeredAt } = entry;
  if (call !== 'resetFence' || outcome === 'PreconditionFailed') return false;
  const until = isUnknown(entry) ? undefined : answeredAt;
  return (
    calledAt.moment < (older.answeredAt?.moment ?? 0) &&
    (until?.moment ?? Number.POSITIVE_INFINITY) > newer.calledAt.moment
  );
};

/** A commit that was acknowledged before it is asked for again is answered as a repeat. */
export function repeatsSaySo(entries: readonly Entry[]): Violation[] {
  const landed = entries.filter((entry) => isWrite(entry) && entry.outcome === 'ok');
  return landed.flatMap((entry) => {
    if (entry.body?.repeated === true) return [];
    const earlier = landed.find(
      (other) =>
        commitIdOf(other) === commitIdOf(entry) &&
        other.answeredAt !== undefined &&
        other.answeredAt.moment < entry.calledAt.moment,
    );
    const detail = `${commitIdOf(entry)} was acknowledged twice as new`;
    return earlier ? [{ promise: 'a repeat of a commit says that it is one', detail, entries: [earlier, entry] }] : [];
  });
}

/** Every answer is what one register with compare-and-swap would have said. */
function objectAgrees(
  entries: readonly Entry[],
  facts: Pick<WorldFacts, 'protocol' | 'foreignCommits' | 'sweeps'>,
): Violation[] {
  const known = entries.filter((entry) => !(entry.call === 'readCommit' && (isUnknown(entry) || saysNothing(entry))));
  const verdict = linearize(commitModel(facts), commitOperations(known));
  if (verdict.linearizable) return [];
  const explained = verdict.explained.map(({ entry }) => entry.id);
  return [
    {
      promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
      detail: `no order explains these answers; the longest that does begins with calls ${explained.join(' ')}`,
      entries: verdict.stuckAt.map(({ entry }) => entry),
    },
  ];
}

/** After all faults, each unknown commit is resolved, and each path takes a commit. */
function decided(entries: readonly Entry[], facts: WorldFacts): Violation[] {
  const afterwards = entries.filter((entry) => entry.actor === AFTERWARDS && isWrite(entry));
  const last = new Map(afterwards.map((entry) => [commitIdOf(entry), entry]));
  const landed = entries.filter(
    ({ call, outcome, body }) => call !== 'readCommit' && outcome === 'ok' && body?.etag,
  ).length;
  // A chain of more than eight, or one that a foreign writer broke, may leave a commit unknown without end.
  const mayStay = facts.foreignCommits || landed >= 8;
  const definite = ['ok', 'PreconditionFailed', 'FenceRejected', ...(mayStay ? ['OutcomeUnknown'] : [])];
  return [...last].flatMap(([commitId, entry]) => {
    const isFinal = commitId === AFTERWARDS;
    if (isFinal ? entry.outcome === 'ok' : definite.includes(entry.outcome ?? '')) return [];
    const promise = isFinal ? 'no path is stuck' : 'each unknown outcome resolves by its commit id';
    return [{ promise, detail: `${commitId} was answered ${entry.outcome ?? 'nothing'}`, entries: [entry] }];
  });
}
