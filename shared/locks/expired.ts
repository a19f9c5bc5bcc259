import { all, type Condition } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { ExpiredRow } from '../expired/rows.ts';
import type { ExpirySource, Found } from '../expired/source.ts';
import { byNamespace, remover, scan } from '../expired/table.ts';
import { findRun, isRun, mayRemember, ONCE_KINDS } from '../once/expired.ts';
import { keyOf, rowOf } from '../once/row-key.ts';
import { isUnmarked } from '../permits/conditions.ts';
import { boundGrants, endAbandoned, expiredGrants, findGrants, GRANT_KINDS } from '../permits/expired.ts';
import { hasMemory } from '../permits/memory.ts';
import { HOLDER_KINDS, questionsAbout } from './bound-holders.ts';

const KINDS = [...GRANT_KINDS, ...HOLDER_KINDS, ...ONCE_KINDS] as const;
type LockKind = (typeof KINDS)[number];

const isHeld: Condition = { expression: 'attribute_exists(lease_version)' };

const deleteRecord = remover<LockKind>({
  place: ({ leasesTable }) => leasesTable,
  key: ['key'],
  // The line decides about a marked record, because a waiter may be behind it.
  deletable: (kind) => (kind.startsWith('abandoned') ? all(isHeld, isUnmarked) : isUnmarked),
});

const isPermit = (row: ExpiredRow): row is ExpiredRow<'abandonedPermit'> => row.kind === 'abandonedPermit';

const isOfHolder = ({ kind }: ExpiredRow): boolean => HOLDER_KINDS.some((one) => one === kind);

/** What finds the expired parts of a record. */
const finderOf = (item: Item) => (hasMemory(item.key?.S ?? '') ? findRun : findGrants);

/** Keys and the records of `once`. Records are read whole, because the entries of shared holders have names of their own. */
export const LOCKS: ExpirySource<LockKind> = {
  place: ({ leasesTable }) => leasesTable,
  kinds: KINDS,
  segmented: true,
  page: async (reader, start, call) => {
    const { clock, margins, places } = reader;
    const now = clock.now();
    const filter = expiredGrants(now, margins);
    const { items, ...page } = await scan(reader, { ...start, table: places.leasesTable, filter }, call);
    const found = items.map((item): Found<LockKind> & { key: string } => ({
      key: keyOf(item.key?.S ?? ''),
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
  // After a deletion the next grant's fence is the time of the grant. The end of a shared or a bound grant leaves the record.
  reasonToSpare: (row, { clockSkewMs }, now) => {
    if (isRun(row) && mayRemember(row, { clockSkewMs }, now)) return 'tooYoung';
    const { fence } = row.identity ?? {};
    const rises = !fence || ('N' in fence && Number(fence.N) < now - clockSkewMs);
    return rises || isPermit(row) || isOfHolder(row) ? undefined : 'fenceAhead';
  },
  remove: (stores, row, call) => {
    if (isPermit(row)) return endAbandoned(stores, row, call);
    if (isOfHolder(row)) return stores.holders.end(row, call);
    return deleteRecord(stores, isRun(row) ? { ...row, key: { key: rowOf(row.key.key ?? '') } } : row, call);
  },
};
