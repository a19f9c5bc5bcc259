import { all, either } from '../aws/conditions.ts';
import { agedBy, holderNamed, identityOf } from './rows.ts';
import type { TableSource } from './table-source.ts';
import { readTtl, reasonWithTtl, ttlIsOver, ttlIsUnreadable, ttlValues } from './ttl.ts';
import { text } from './values.ts';

const IDENTITY = ['generation', 'ttl', 'timeout', 'written_at', 'seen_at'] as const;

/** The range key of a first sight begins so; that of a commit record is `*` or an ETag in quotes. */
const SIGHT_PREFIX = 'holdfast:first-sight:';

const record = all(
  either('#etag = :create', 'begins_with(#etag, :quote)'),
  'attribute_type(#generation, :number)',
  'attribute_type(#timeout, :number)',
);
const sight = 'begins_with(#etag, :sight) AND attribute_type(#seen_at, :number)';

export const COMMITS: TableSource = {
  table: ({ commitsTable }) => commitsTable,
  kinds: ['commit', 'firstSight'],
  key: ['path', 'etag'],
  attributes: [...IDENTITY, 'commit_id'],
  filtered: [],
  filter: all(either(record, sight), either(ttlIsOver('#ttl'), ttlIsUnreadable('#ttl'))),
  values: (now) => ({
    ...ttlValues(now),
    ':create': text('*'),
    ':quote': text('"'),
    ':sight': text(SIGHT_PREFIX),
  }),
  row: (item, now) => {
    const etag = item.etag?.S ?? '';
    const isSight = etag.startsWith(SIGHT_PREFIX);
    // The ids that it displaced follow the record's own, each after a blank.
    const holder = holderNamed(item.commit_id?.S?.split(' ', 1)[0]);
    const { atMs, fault } = readTtl(item.ttl, now);
    const writer = holder === null ? "another client's commit" : `commit ${holder}`;
    const whose = isSight ? "the note of when another client's record was first seen" : `the record of ${writer}`;
    const what = atMs === undefined ? `it is ${whose}` : `${whose} is past its ttl`;
    return {
      kind: isSight ? 'firstSight' : 'commit',
      key: { path: item.path?.S ?? '', etag },
      holder,
      ...agedBy(atMs, now),
      ...reasonWithTtl(what, fault),
      identity: identityOf(item, IDENTITY),
    };
  },
  deletable: () => undefined,
};
