import { all, either } from '../aws/conditions.ts';
import { agedBy, identityOf } from './rows.ts';
import type { TableSource } from './table-source.ts';
import { readTtl, reasonWithTtl, ttlIsOver, ttlIsUnreadable, ttlValues } from './ttl.ts';
import { text } from './values.ts';

const IDENTITY = ['ttl', 'commit_t', 'updated_at_ms'] as const;

/** Public Fluree writes a row for each commit, with a ttl of 30 days; the rest of a record carries none. */
export const COMMIT_ROWS = 'commit#';
const PARTS = ['meta', 'head', 'index', 'config', 'status'];

const commitRow = 'begins_with(#sk, :commit) AND attribute_type(#commit_t, :number)';
const partOfRecord = all('attribute_type(#schema, :number)', `#sk IN (${PARTS.map((part) => `:${part}`)})`);

export const NAMESERVICE: TableSource = {
  table: ({ nameserviceTable }) => nameserviceTable,
  kinds: ['nameserviceRow'],
  key: ['pk', 'sk'],
  attributes: IDENTITY,
  filtered: ['schema'],
  filter: all(
    'attribute_exists(#ttl)',
    either(ttlIsOver('#ttl'), ttlIsUnreadable('#ttl')),
    either(commitRow, partOfRecord),
  ),
  values: (now) => ({
    ...ttlValues(now),
    ':commit': text(COMMIT_ROWS),
    ...Object.fromEntries(PARTS.map((part) => [`:${part}`, text(part)])),
  }),
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
  deletable: () => undefined,
};
