import { integer, number, text } from '../aws/attributes.ts';
import { aliased, all, type Condition } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { HoldfastError } from '../errors.ts';
import { agedBy, type ExpiredRow, holderNamed, identityOf } from '../expiry/sources/rows.ts';
import type {
  BoundGrantRow,
  ExecutionQuestion,
  ExecutionVerdict,
  ExpirySource,
  Found,
  Holders,
} from '../expiry/sources/source.ts';
import { byNamespace, remover, scanTable, tableSource } from '../expiry/sources/table.ts';
import { readTtl, reasonWithTtl } from '../expiry/sources/ttl.ts';
import { findRun, isRun, mayRemember, ONCE_KINDS } from '../once/expired.ts';
import { onceKeyOf, onceRowOf } from '../once/row-key.ts';
import { logLine } from '../surroundings/log.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { boundGrants, endAbandoned, expiredGrants, findGrants, GRANT_KINDS } from './expired-grants.ts';
import { hasNoCapOnRecord } from './record/capped.ts';
import { isUnmarked } from './record/conditions.ts';
import { NAMELESS } from './record/held-text.ts';
import { isOnceRecord } from './record/identity.ts';

const HOLDER_KINDS = ['holderEnded', 'holderUnknown'] as const;
type HolderKind = (typeof HOLDER_KINDS)[number];

/**
 * Asks about the executions of bound grants for the report, and ends the grants of ended executions for the clean-up.
 * Loads that code at the first bound grant, because most reports do not find one.
 */
export const boundHolders = (dependencies: LeaseDependencies): Holders => ({
  async ask(execution, call) {
    const { clock, clockSkewMs } = dependencies;
    const { describeExecution } = await import('./executions/state.ts');
    const { judgeByAnswer } = await import('./executions/judgement.ts');
    const askedAt = clock.now();
    const described = await describeExecution(dependencies, execution, call).catch((error) => {
      if (!(error instanceof HoldfastError) || error.code === 'Throttled') throw error;
      logLine('WARN', { message: 'AWS does not say whether an execution runs', cause: error.message });
    });
    if (described === undefined || described.state === 'foreign') return () => 'unknown';
    const judge = judgeByAnswer(described, { askedAt, clockSkewMs });
    return (grant) => judge(grant) ?? 'goesOn';
  },
  async end(row, call) {
    const { endIfOver } = await import('./executions/ended.ts');
    return endIfOver(dependencies, row, call);
  },
});

/** Makes one question about each execution that holds bound grants. */
const questionsAbout = (
  holders: Holders,
  holdings: readonly BoundGrantRow[],
  now: number,
): ExecutionQuestion<HolderKind>[] =>
  [...Map.groupBy(holdings, ({ execution }) => execution)].map(([execution, held]) => async (call) => {
    const verdictOn = await holders.ask(execution, call);
    return held.flatMap((holding) => holderRow(holding, verdictOn(holding.grant), now));
  });

function holderRow(
  { key, holder, execution, isUnnotified, identity }: BoundGrantRow,
  verdict: ExecutionVerdict,
  now: number,
): ExpiredRow<HolderKind>[] {
  if (verdict === 'goesOn' && !isUnnotified) return [];
  const named = holder ?? NAMELESS;
  const endedAt = typeof verdict === 'string' ? undefined : verdict.endedAt;
  const unknown =
    verdict === 'goesOn'
      ? `${named} may never have been notified of the grant, and its execution runs`
      : `AWS does not say whether the execution of ${named} runs`;
  const ended = `the execution of ${named} has ended, and no other caller wanted the key`;
  const [kind, why] = endedAt === undefined ? (['holderUnknown', unknown] as const) : (['holderEnded', ended] as const);
  const row = { kind, key, holder, reason: `${why}: ${execution}`, neverDeletable: false, ttlFault: null, identity };
  return [{ ...row, ...agedBy(endedAt, now) }];
}

const LOCK_KINDS = [...GRANT_KINDS, ...HOLDER_KINDS, ...ONCE_KINDS] as const;
type LockKind = (typeof LOCK_KINDS)[number];

const hasLeaseVersion: Condition = { expression: 'attribute_exists(lease_version)' };

const deleteRecord = remover<LockKind>({
  location: ({ leasesTable }) => leasesTable,
  key: ['key'],
  // A marked record is left to the line. A capped record is left alone because the cap would go with it.
  deletable: (kind) => all(isUnmarked, hasNoCapOnRecord, ...(kind.startsWith('abandoned') ? [hasLeaseVersion] : [])),
});

const isPermit = (row: ExpiredRow): row is ExpiredRow<'abandonedPermit'> => row.kind === 'abandonedPermit';

const isOfHolder = ({ kind }: ExpiredRow): boolean => HOLDER_KINDS.some((holderKind) => holderKind === kind);

const finderOf = (item: Item) => (isOnceRecord(item.key?.S ?? '') ? findRun : findGrants);

/**
 * The records of keys and of `once`. The scan reads whole records, because the names of the attributes of shared
 * holders are not fixed.
 */
export const LOCKS: ExpirySource<LockKind> = {
  location: ({ leasesTable }) => leasesTable,
  kinds: LOCK_KINDS,
  segmented: true,
  page: async (reader, start, call) => {
    const { clock, margins, locations } = reader;
    const now = clock.now();
    const filter = expiredGrants(now, margins);
    const { items, ...page } = await scanTable(reader, { ...start, table: locations.leasesTable, filter }, call);
    const found = items.map((item): Found<LockKind> & { key: string } => ({
      key: onceKeyOf(item.key?.S ?? ''),
      ...finderOf(item)(item, now, margins),
    }));
    const bound = items.flatMap((item) => boundGrants(item, now, margins));
    return {
      ...page,
      rows: found.flatMap(({ rows }) => rows),
      questions: questionsAbout(reader.holders, bound, now),
      held: byNamespace(found),
    };
  },
  // Without a record, the fence of the next grant is the clock, so a higher fence must stay. The end
  // of a shared or a bound grant leaves the record.
  reasonToSpare: (row, { clockSkewMs }, now) => {
    if (isRun(row) && mayRemember(row, { clockSkewMs }, now)) return 'tooYoung';
    const { fence } = row.identity ?? {};
    const nextIsHigher = !fence || ('N' in fence && Number(fence.N) < now - clockSkewMs);
    return nextIsHigher || isPermit(row) || isOfHolder(row) ? undefined : 'fenceAhead';
  },
  remove: (stores, row, call) => {
    if (isPermit(row)) return endAbandoned(stores, row, call);
    if (isOfHolder(row)) return stores.holders.end(row, call);
    return deleteRecord(stores, isRun(row) ? { ...row, key: { key: onceRowOf(row.key.key ?? '') } } : row, call);
  },
};

const WAITER_IDENTITY = ['deadline', 'parked_at', 'ttl'] as const;

/**
 * The rows of tasks that are parked for a lease or a permit. A task token or a callback id shows that a row belongs to
 * a task. Both are secrets, so only the filter checks for them, and the scan does not read them.
 */
export const WAITERS = tableSource<'waiter'>({
  location: ({ waitersTable }) => waitersTable,
  kinds: ['waiter'],
  key: ['key', 'ticket'],
  attributes: [...WAITER_IDENTITY, 'holder', 'weight'],
  filter: (now, { clockSkewMs }) =>
    aliased('(attribute_type(#task_token, :string) OR attribute_type(#callback_id, :string)) AND #deadline < :cut', {
      ':string': text('S'),
      ':cut': integer(now - clockSkewMs),
    }),
  row: (item, now) => {
    const { fault } = readTtl(item.ttl, now);
    const holder = holderNamed(item.holder?.S);
    const lock = item.weight === undefined ? 'the lease' : 'a permit';
    const what = `${holder ?? 'a caller without a name'} is still parked for ${lock}, and its deadline is past`;
    return {
      kind: 'waiter',
      key: { key: item.key?.S ?? '', ticket: item.ticket?.S ?? '' },
      holder,
      ...agedBy(number(item, 'deadline'), now),
      ...reasonWithTtl(what, fault),
      identity: identityOf(item, WAITER_IDENTITY),
    };
  },
  untouchable: () => 'leftToQueue',
});
