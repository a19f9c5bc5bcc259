import { expect, it } from 'vitest';
import { NAMESERVICE } from '../../shared/nameservice/expired.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const MARGINS = { clockSkewMs: 500, fenceRetentionSeconds: 60, maxClockSkewRate: 3 };

it.each([
  ['commit#7', { N: '1767225000' }, 'the row of a commit of the ledger is past its ttl'],
  ['head', { N: '1767225000' }, "the part 'head' of the record is past its ttl"],
  [
    'commit#7',
    { S: 'soon' },
    'it is the row of a commit of the ledger; its TTL is not a number, so DynamoDB never deletes it',
  ],
  ['head', { S: 'soon' }, "it is the part 'head' of the record; its TTL is not a number, so DynamoDB never deletes it"],
])('the report shows of %s with the ttl %o what it is', (sk, ttl, reason) => {
  const row = NAMESERVICE.row({ pk: { S: 'ledger' }, sk: { S: sk }, ttl }, NOW, MARGINS);
  expect(row).toMatchObject({ kind: 'nameserviceRow', key: { pk: 'ledger', sk }, holder: null, reason });
});
