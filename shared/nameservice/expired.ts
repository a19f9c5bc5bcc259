import { text } from '../aws/attributes.ts';
import { aliased, all, any } from '../aws/condition.ts';
import { agedBy, identityOf } from '../expiry/sources/rows.ts';
import { tableSource } from '../expiry/sources/table.ts';
import { readTtl, reasonWithTtl, ttlIsOver, ttlIsUnreadable } from '../expiry/sources/ttl.ts';
import { CONCERNS } from './items.ts';

const IDENTITY = ['ttl', 'commit_t', 'updated_at_ms'] as const;

/**
 * The sort keys of the rows that public Fluree writes for each commit, with a TTL of 30 days. Other items of an alias
 * do not have a TTL.
 */
const COMMIT_ROWS = 'commit#';

const isCommitRow = aliased('begins_with(#sk, :commit) AND attribute_type(#commit_t, :number)', {
  ':commit': text(COMMIT_ROWS),
  ':number': text('N'),
});
const isPartOfRecord = aliased(
  `attribute_type(#schema, :number) AND #sk IN (${CONCERNS.map((concern) => `:${concern}`).join(', ')})`,
  { ':number': text('N'), ...Object.fromEntries(CONCERNS.map((concern) => [`:${concern}`, text(concern)])) },
);

export const NAMESERVICE = tableSource<'nameserviceRow'>({
  location: ({ nameserviceTable }) => nameserviceTable,
  kinds: ['nameserviceRow'],
  key: ['pk', 'sk'],
  attributes: IDENTITY,
  filter: (now) =>
    all(
      aliased('attribute_exists(#ttl)'),
      any(ttlIsOver('ttl', now), ttlIsUnreadable('ttl')),
      any(isCommitRow, isPartOfRecord),
    ),
  row: (item, now) => {
    const { atMs, fault } = readTtl(item.ttl, now);
    const sk = item.sk?.S ?? '';
    const whose = sk.startsWith(COMMIT_ROWS) ? 'the row of a commit of the ledger' : `the part '${sk}' of the record`;
    const what = atMs === undefined ? `it is ${whose}` : `${whose} is past its ttl`;
    return {
      kind: 'nameserviceRow',
      key: { pk: item.pk?.S ?? '', sk },
      holder: null,
      ...agedBy(atMs, now),
      ...reasonWithTtl(what, fault),
      identity: identityOf(item, IDENTITY),
    };
  },
  untouchable: ({ key }) => (key.sk?.startsWith(COMMIT_ROWS) ? undefined : 'partOfRecord'),
});
