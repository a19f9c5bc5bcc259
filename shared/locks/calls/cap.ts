import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, type Condition, not } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { HoldfastError } from '../../errors.ts';
import { MAX_PERIOD_SECONDS } from '../../periods.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { bothCaps } from '../record/cap-rules.ts';
import { type Cap, capView, hasNoCapOnRecord } from '../record/capped.ts';
import { isOnceRecord } from '../record/identity.ts';
import { weightShown } from '../record/outcomes.ts';
import type { KeyRecord } from '../record/record.ts';
import { readKey, secondsAttribute, ttlAfter, updateKey, type WritePart } from '../record/requests.ts';
import { keySummary } from '../record/views.ts';
import type { CapInput } from './inputs.ts';
import { waitingBy } from './list-keys.ts';
import { handOffToLine } from './release.ts';
import { type Capped, operatorOf } from './types.ts';

/** A command is tried again if another command came first. Operators are few, so a few tries are enough. */
const MAX_CAP_TRIES = 5;

interface KeyCapCommand {
  key: string;
  /** Null lifts the cap of the lock, and undefined does not change it. */
  limit: number | null | undefined;
  reason: string;
  operator: string | undefined;
  /** Epoch milliseconds. */
  until: number | undefined;
}

/**
 * Sets or lifts the cap of a key (docs/protocols/cap.md), with one conditional write on the record of the lock and one
 * on the record of the rate. Then serves the line, unless the key is paused.
 * @throws HoldfastError Conflict (other operators were faster, five times), Throttled, Unavailable, OutcomeUnknown
 */
export function capKey(dependencies: LeaseDependencies) {
  const { clock } = dependencies;
  return async ({ key, limit, rates, kind, reason = '', forSeconds }: CapInput, call: Call): Promise<Capped> => {
    const now = clock.now();
    const until = forSeconds === undefined ? undefined : now + forSeconds * 1000;
    const command = { key, reason, operator: operatorOf(call), until };
    if (kind === 'once') {
      const { onRow } = await import('../../once/row-key.ts');
      return onRow((row: KeyCapCommand) => capRecord(dependencies, row, call))({ ...command, limit }, call);
    }
    const [{ writeRateCap }, { rateCapView }] = [
      await import('../../rates/rate-cap.ts'),
      await import('../../rates/record.ts'),
    ];
    const change = { ...(limit !== undefined && { paused: limit === 0 }), ...(rates !== undefined && { rates }) };
    // The rate comes first: once readers see the key paused, no call may reserve any more.
    const ofRate = await writeRateCap(dependencies, { ...command, change, by: command.operator, now }, call);
    const ofLock = await capRecord(dependencies, { ...command, limit }, call);
    return {
      ...ofLock,
      cap: bothCaps(ofLock.cap, ofRate.cap && rateCapView(ofRate.cap)),
      before: bothCaps(ofLock.before, ofRate.before && rateCapView(ofRate.before)),
    };
  };
}

async function capRecord(dependencies: LeaseDependencies, command: KeyCapCommand, call: Call): Promise<Capped> {
  const { key, limit } = command;
  const { record, before } =
    limit === undefined
      ? await readCap(dependencies, key, call)
      : await writeCap(dependencies, { ...command, limit }, call);
  if (limit !== undefined && limit !== 0) await handOffToLine(dependencies, { record }, call);
  const now = dependencies.clock.now();
  return {
    key,
    cap: record.cap ? capView(record.cap) : null,
    before: before ? capView(before) : null,
    used: record.thirdParty ? 1 : weightShown(record.used),
    waiting: waitingBy(record, now),
  };
}

async function readCap(dependencies: LeaseDependencies, key: string, call: Call) {
  const record = await readKey(dependencies, key, call);
  return { record, before: record.cap };
}

type LockCapCommand = KeyCapCommand & { limit: number | null };

/**
 * @returns `before`: the cap that the command has replaced. Undefined if there was no cap, or if the response was lost
 */
async function writeCap(
  dependencies: LeaseDependencies,
  command: LockCapCommand,
  call: Call,
): Promise<{ record: KeyRecord; before?: Cap | undefined }> {
  const { clock } = dependencies;
  const { key } = command;
  let lastRecord: KeyRecord | undefined;
  for (let tries = 0; tries < MAX_CAP_TRIES; tries++) {
    const commandedAt = Math.max(clock.now(), (lastRecord?.capAt ?? 0) + 1);
    const { set, remove, values, condition } = updateFor(dependencies, { command, commandedAt, lastRecord });
    const update = {
      key,
      set,
      remove,
      values,
      condition: all(isLater(commandedAt), condition),
      returns: 'ALL_OLD' as const,
    };
    const { won, record, before, unanswered } = await updateKey(dependencies, update, call);
    if (won) return { record, before: before?.cap };
    if (unanswered && record.capAt === commandedAt) return { record };
    lastRecord = record;
  }
  throw new HoldfastError('Conflict', 'other operators cap the key at the same time: send the call again', {
    key,
    actual: lastRecord ? keySummary(lastRecord, clock.now()) : null,
  });
}

/** Each command has a later `cap_at`, so a late duplicate of an earlier command does not change the cap. */
const isLater = (commandedAt: number): Condition => ({
  expression: 'attribute_not_exists(cap_at) OR cap_at < :cap_at',
  values: { ':cap_at': integer(commandedAt) },
});

type CapUpdate = Pick<WritePart, 'set' | 'remove' | 'values'> & { condition: Condition };

interface Commanded {
  command: LockCapCommand;
  commandedAt: number;
  /**
   * The record as the last try returned it. Undefined before the first try, which expects a record of ours and, if it
   * lifts, a cap.
   */
  lastRecord: KeyRecord | undefined;
}

/** The longest time for which a record of `once` remembers a slot. */
const MAX_KEEP_MS = 2 * MAX_PERIOD_SECONDS * 1000;

function updateFor(
  { fenceRetentionSeconds }: LeaseDependencies,
  { command: { key, limit, reason, operator, until }, commandedAt, lastRecord }: Commanded,
): CapUpdate {
  const lifts = limit === null;
  const hasCap = !lastRecord || lastRecord.cap !== undefined;
  const far = ttlAfter(commandedAt + (isOnceRecord(key) ? MAX_KEEP_MS : 0));
  const named: Item = lifts
    ? { cap_at: integer(commandedAt) }
    : {
        ...{ cap: integer(limit), cap_at: integer(commandedAt), cap_reason: text(reason), cap_ttl: far },
        ...(operator !== undefined && { cap_by: text(operator) }),
        ...(until !== undefined && { cap_until: integer(until) }),
      };
  // On the record of a third-party client, the TTL attribute is the expiry of that client's lease.
  const isTheirs = lastRecord?.thirdParty !== undefined;
  const retention = secondsAttribute(commandedAt + fenceRetentionSeconds * 1000);
  const [expiry, value] = lifts && !hasCap ? ['if_not_exists(lease_expiry, :expiry)', retention] : [':expiry', far];
  return {
    set: [...Object.keys(named).map((name) => `${name} = :${name}`), ...(isTheirs ? [] : [`lease_expiry = ${expiry}`])],
    remove: LIFTED_ATTRIBUTES.filter((name) => !(name in named)),
    values: {
      ...Object.fromEntries(Object.entries(named).map(([name, attribute]) => [`:${name}`, attribute])),
      ...(!isTheirs && { ':expiry': value }),
    },
    condition: all(
      isTheirs ? isThirdParty : not(isThirdParty),
      ...(lifts ? [hasCap ? not(hasNoCapOnRecord) : hasNoCapOnRecord] : []),
    ),
  };
}

/**
 * The attributes that a lift removes. `cap_at` stays, because a try of an earlier command may arrive after the lift.
 */
const LIFTED_ATTRIBUTES = ['cap', 'cap_by', 'cap_reason', 'cap_ttl', 'cap_until'];

const isThirdParty: Condition = { expression: 'attribute_not_exists(used) AND attribute_exists(lease_version)' };
