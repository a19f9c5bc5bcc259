import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, describe, expect, it } from 'vitest';
import { encodeCursor } from '../../shared/listings/cursor.ts';
import { acquire as acquireKey } from '../../shared/locks/acquire.ts';
import { acquireInput, readInput } from '../../shared/locks/inputs.ts';
import type { KeyPage } from '../../shared/locks/listed-keys.ts';
import { lookUp } from '../../shared/locks/read.ts';
import { call } from '../support/emulators/aws.ts';
import { documented } from '../support/stack/contract.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

// The cursors of GET /v1/leases (docs/api/keys.md).

const { dependencies, steps } = await queueWorld();
afterAll(() => steps.stop());
const acquire = acquireKey(dependencies);
const read = documented('readLeases', lookUp(dependencies));
const list = async (query: object) => (await read(readInput().parse(query), call())) as KeyPage;

const longest = ['a', '"', '\u0001', 'é'].map((text) => text.repeat(1024 / Buffer.byteLength(text)));
for (const [nth, key] of longest.entries())
  await acquire(
    acquireInput().parse({ key, holder: 'tester', ttlSeconds: 60 + nth, ...(nth % 2 && { limit: 2 }) }),
    call(),
  );

const foreign = 'z'.repeat(2048);
await dependencies.dynamodb.send(
  new PutItemCommand({
    TableName: dependencies.table,
    Item: { key: { S: foreign }, lease_version: { S: 'da91f8eb' }, lease_expiry: { N: '9999999999' } },
  }),
);
longest.push(foreign);

describe('the cursor of a list', () => {
  it.each(['key', 'expiry'])(
    'a cursor continues a list that is sorted by %s behind each key of the longest size',
    async (sort) => {
      const seen: string[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await list({ sort, limit: 1, ...(cursor && { cursor }) });
        seen.push(...page.leases.map(({ key }) => key));
        cursor = page.nextCursor;
      }
      expect(seen).toEqual(sort === 'key' ? longest.toSorted() : longest);
    },
  );

  it('a cursor is refused by a list with another sort', async () => {
    const sorts = [{}, { sort: 'key' }, { sort: 'expiry' }];
    for (const of of sorts)
      for (const other of sorts.filter((one) => one !== of)) {
        const { nextCursor } = await list({ ...of, limit: 1 });
        const refused = await failure(list({ ...other, cursor: nextCursor }));
        expect(refused.context.issues).toEqual([
          { path: 'cursor', message: 'belongs to a list with another sort: send that sort, or no cursor' },
        ]);
      }
  });

  it.each(['', 'key', 'key:', '["a","b"]', '[1]', '[['])(
    'a cursor of a sorted list is refused if it reads %j',
    async (text) => {
      const refused = await failure(list({ sort: 'key', cursor: encodeCursor(text) || '-' }));
      expect(refused.context.issues).toMatchObject([{ path: 'cursor' }]);
    },
  );
});
