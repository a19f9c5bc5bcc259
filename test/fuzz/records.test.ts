import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SOURCES } from '../../functions/expiry/sources.ts';
import type { Json } from '../../shared/aws/attributes.ts';
import { newServiceMetadata, parseServiceMetadata } from '../../shared/commits/metadata.ts';
import { normalEtag } from '../../shared/commits/paths.ts';
import { parseRecord, recordItem } from '../../shared/commits/record.ts';
import { HoldfastError } from '../../shared/errors.ts';
import { KINDS, type Kind, sourceOf } from '../../shared/expiry/kinds.ts';
import type { TableSource } from '../../shared/expiry/sources/table.ts';
import { reasonToSpare } from '../../shared/expiry/spared.ts';
import { decodeCursor, encodeCursor } from '../../shared/listings/cursor.ts';
import { KEY_STATES } from '../../shared/locks/calls/types.ts';
import { boundGrants, findGrants } from '../../shared/locks/expired-grants.ts';
import { EXCLUSIVE_PATH } from '../../shared/locks/record/identity.ts';
import { entryItem } from '../../shared/locks/record/new-entries.ts';
import { parseKey } from '../../shared/locks/record/record.ts';
import { leaseHeld } from '../../shared/locks/record/refusals.ts';
import { keyView } from '../../shared/locks/record/views.ts';
import { aliasText, parseAlias } from '../../shared/nameservice/alias.ts';
import { graphSourceItems, ledgerItems } from '../../shared/nameservice/items.ts';
import { itemsByConcern, recordOf } from '../../shared/nameservice/record.ts';
import { asRead, type JsonObject, mapAttribute, objectOf } from '../../shared/nameservice/values.ts';
import { anyText } from '../support/chance/seed.ts';
import { rounds } from '../support/time/rounds.ts';
import { entryOf } from '../support/worlds/expiry.ts';

const text = anyText({ minLength: 1, maxLength: 30 });
const part = text.filter((value) => !value.includes(':'));
const hex = fc.stringMatching(/^[0-9a-f]{1,32}$/);
const counter = fc.maxSafeNat();
const commitId = fc.stringMatching(/^[!-~]{1,64}$/);
const fence = fc.option(fc.record({ key: text, token: counter }), { nil: undefined });
const epochMs = fc.integer({ min: 0, max: 8.64e15 });

/** Any attribute that any client may have written. */
const attribute = fc.oneof(
  fc.record({ S: fc.oneof(fc.string(), fc.constantFrom('', ' ', '*', '{', 'ledger', 'graph_source')) }),
  fc.record({ N: fc.oneof(fc.integer().map(String), fc.constantFrom('-1', '1.5', '9.9E+125', '9007199254740993')) }),
  fc.record({ BOOL: fc.boolean() }),
  fc.constant({ NULL: true }),
  fc.constant({ M: { a: { S: 'b' }, c: { SS: ['d'] } } }),
  fc.constant({ L: [{ S: 'a' }, { N: '1' }] }),
) as fc.Arbitrary<AttributeValue>;

/** Reading it gives something, or a documented error. */
function expectDocumented(read: () => unknown): void {
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(HoldfastError);
  }
}

describe('records of keys', () => {
  const NOW = 1_767_225_600_123;

  it('records of keys read back as they were written, alone and with others', () => {
    const name = fc.stringMatching(/^[\w-]{16}$/);
    const grants = fc.record({
      ...{ name, id: fc.uuid(), version: fc.uuid(), holder: text, isAlone: fc.boolean(), fence: counter },
      ...{ ttlMs: fc.integer({ min: 2000, max: 86_400_000 }), acquiredAt: epochMs, weight: fc.integer({ min: 1 }) },
      data: fc.option(fc.jsonValue() as fc.Arbitrary<Json>, { nil: undefined }),
      target: fc.option(text, { nil: undefined }),
    });
    fc.assert(
      fc.property(grants, ({ isAlone, fence, ...kept }) => {
        const path = isAlone ? EXCLUSIVE_PATH : `h${kept.name}`;
        const expiresAt = Math.min(kept.acquiredAt + kept.ttlMs, 8.64e15);
        const fences = { fence: { N: String(fence) }, ...(!isAlone && { [`f${kept.name}`]: { N: String(fence) } }) };
        const item = { used: { N: '1' }, ...fences, [path]: entryItem({ ...kept, path, expiresAt }) };
        // JSON has no negative zero
        const data = kept.data === undefined ? undefined : JSON.parse(JSON.stringify(kept.data));
        expect(parseKey('k', item).entries).toMatchObject([{ ...kept, path, fence, expiresAt, data }]);
      }),
    );
  });

  it('records of keys by any other writer can be read, refused and reported', () => {
    const names = [
      'key',
      'lease_version',
      'lease_expiry',
      'used',
      'fence',
      'mark',
      'freed_at',
      'last_limit',
      'cap',
      'cap_at',
      'cap_until',
      'h',
    ];
    const numbers = ['0', '-1', '1.5', '9e12', '8640000000000001', '9.9E+125', '-9.9E+125'].map((N) => ({ N }));
    const value = fc.oneof(attribute, fc.constantFrom(...numbers));
    const parts = fc.constantFrom(...'ivhebtawsmpodxgzjkcq'.split(''));
    const full = (entryOf('x', NOW, { m: { S: 'name' } }) as { M: object }).M;
    const entry = fc.dictionary(parts, value).map((more) => ({ M: { ...full, ...more } }));
    const margins = { clockSkewMs: 500, fenceRetentionSeconds: 3600, maxClockSkewRate: 3 };
    const request = { name: 'x', weight: 1, room: 1, limit: 2 };
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), fc.oneof(value, entry)), (item) => {
        const record = parseKey('k', item);
        expect(KEY_STATES).toContain(keyView(record, NOW).state);
        expect(leaseHeld(record, { request, now: NOW, clockSkewMs: 500 }).retryAfterMs).toBeGreaterThan(0);
        for (const row of findGrants(item, NOW, margins).rows) {
          expect(row.ageSeconds).toBeGreaterThanOrEqual(0);
          expect(JSON.parse(JSON.stringify(row))).toEqual(row);
        }
        boundGrants(item, NOW, margins);
      }),
      { numRuns: rounds(1000, 80) },
    );
  });
});

describe('commit records', () => {
  it('commit records read back as written, with the ids of the records before', () => {
    const record = fc.record({
      path: text,
      expectedEtag: fc.option(hex.map((digits) => `"${digits}"`)),
      generation: fc.nat(),
      timeoutMs: fc.nat(),
      ttlSeconds: fc.nat(),
      writtenAt: fc.nat(),
      ids: fc.uniqueArray(commitId, { minLength: 1, maxLength: 30 }),
    });
    fc.assert(
      fc.property(record, ({ ids, ...fields }) => {
        let item = recordItem({ ...fields, commitId: ids[0] ?? '', before: undefined });
        for (const id of ids.slice(1)) item = recordItem({ ...fields, commitId: id, before: parseRecord(item) });
        const { commitId: last, displaced, displacedMore, ours, generation, timeoutMs } = parseRecord(item);
        const others = ids.slice(0, -1).reverse();
        expect({ last, ours, generation, timeoutMs }).toEqual({
          last: ids.at(-1),
          ours: true,
          generation: fields.generation,
          timeoutMs: fields.timeoutMs,
        });
        expect(displaced).toEqual(others.slice(0, 16));
        expect(displacedMore).toBe(others.length > 16);
      }),
    );
  });

  it('commit records of any other writer can be read, or are refused by name', () => {
    const names = fc.constantFrom(
      'path',
      'etag',
      'generation',
      'timeout',
      'ttl',
      'commit_id',
      'written_at',
      '__proto__',
    );
    fc.assert(fc.property(fc.dictionary(names, attribute), (item) => expectDocumented(() => parseRecord(item))));
  });
});

describe('the metadata that a commit writes on its object', () => {
  it('the metadata of a commit reads back as written, and fits into S3 metadata', () => {
    const history = fc.array(fc.record({ commitId, fingerprint: fc.stringMatching(/^[\w-]{11}$/) }), {
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(text, history, fence, (path, entries, fence) => {
        let metadata: Record<string, string> = {};
        for (const [index, entry] of entries.entries())
          metadata = newServiceMetadata(path, {
            before: index === 0 ? null : parseServiceMetadata(path, metadata),
            entry,
            fence,
          });
        expect(parseServiceMetadata(path, metadata)).toEqual({
          commits: entries.slice(-8),
          complete: entries.length <= 8,
          fence,
          call: undefined,
          isReset: false,
        });
        expect(Object.entries(metadata).flat().join('')).toMatch(/^[ -~]*$/);
        expect(parseServiceMetadata(`${path}.`, metadata)).toBeUndefined();
      }),
    );
  });

  it('metadata of any other make is read without a fault', () => {
    const metadata = fc.dictionary(
      fc.constantFrom('holdfast-commits', 'holdfast-fence', '__proto__'),
      fc.oneof(fc.string(), fc.constantFrom('~', ' ', '1 ', '1 =')),
    );
    fc.assert(fc.property(text, metadata, (path, given) => void parseServiceMetadata(path, given)));
  });
});

describe('records of the nameservice', () => {
  const alias = fc.record({ name: part, branch: part });
  const pointer = fc.record({ address: text, t: counter });
  const style = fc.constantFrom('address' as const, 'id' as const);

  it('records of the nameservice read back as written, under any pointer attributes', () => {
    fc.assert(
      fc.property(alias, epochMs, style, style, pointer, pointer, (alias, now, written, read, commit, index) => {
        const record = recordOf(itemsByConcern(ledgerItems(alias, { now, style: written }, { commit, index })), read);
        const updatedAt = new Date(now).toISOString();
        expect(record).toMatchObject({
          alias: aliasText(alias),
          kind: 'ledger',
          ...alias,
          retracted: false,
          commit,
          index,
          updatedAt,
        });
      }),
    );
  });

  it('records of graph sources read back as they were written', () => {
    const source = fc.record({ sourceType: text, config: fc.json(), dependencies: fc.array(text) });
    fc.assert(
      fc.property(alias, style, source, (alias, style, source) => {
        const record = recordOf(itemsByConcern(graphSourceItems(alias, source, { now: 0, style })), style);
        const { sourceType, dependencies } = source;
        expect(record).toMatchObject({
          kind: 'graph_source',
          sourceType,
          dependencies,
          config: { v: 1, value: JSON.parse(source.config) },
        });
      }),
    );
  });

  it('records of any other client can be read', () => {
    const names = [
      'kind',
      'name',
      'branch',
      'commit_address',
      'commit_t',
      'index_id',
      'index_t',
      'status',
      'status_v',
      'status_meta',
    ];
    const more = [
      'config_v',
      'config_meta',
      'config_json',
      'retracted',
      'dependencies',
      'source_type',
      'updated_at_ms',
    ];
    const item = fc.dictionary(fc.constantFrom(...names, ...more), attribute);
    const concern = fc.constantFrom('meta', 'head', 'index', 'config', 'status', 'other');
    const row = fc.tuple(concern, item).map(([sk, rest]) => ({ pk: { S: 'a:b' }, ...rest, sk: { S: sk } }));
    fc.assert(
      fc.property(fc.array(row, { maxLength: 6 }), (rows) => void recordOf(itemsByConcern(rows), 'address')),
      { numRuns: rounds(500, 100) },
    );
  });

  it('records of the nameservice keep any JSON object as readers find it', () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue()) as fc.Arbitrary<JsonObject>;
    fc.assert(
      fc.property(object, (value) => {
        const stored = objectOf(mapAttribute(value));
        expect(stored).toEqual(asRead(value));
        expect(objectOf(mapAttribute(stored))).toEqual(stored);
        expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
      }),
    );
  });
});

describe('rows of a report', () => {
  const margins = { clockSkewMs: 500, fenceRetentionSeconds: 3600, maxClockSkewRate: 3 };
  const { commits, nameservice, waiters } = SOURCES;
  const tables: TableSource<Kind>[] = [commits, nameservice, waiters];
  const FILTERED = ['lease_version', 'lease_id', 'task_token', 'schema'];

  it('one source makes the rows of each kind for a report', () => {
    const reported = Object.values(SOURCES).flatMap(({ kinds }): readonly Kind[] => kinds);
    expect(reported.toSorted()).toEqual([...KINDS].toSorted());
    for (const kind of KINDS) expect(sourceOf(SOURCES, kind).kinds).toContain(kind);
  });

  it.each(tables)('any content of the table becomes rows of a report: $kinds', (source) => {
    const names = [...source.key, ...source.attributes, ...FILTERED, '__proto__'];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), attribute), epochMs, (item, now) => {
        const row = source.row(item, now, margins);
        expect(source.kinds).toContain(row.kind);
        expect(row.ageSeconds).toBeGreaterThanOrEqual(0);
        expect(JSON.parse(JSON.stringify(row))).toEqual(row);
        const criteria = { olderThanSeconds: 0, neverDeletable: true };
        const mayGo = reasonToSpare(row, criteria, { source: sourceOf(SOURCES, row.kind), margins, now }) === undefined;
        expect(mayGo && (row.identity === null || row.ageSeconds < margins.fenceRetentionSeconds)).toBe(false);
      }),
      { numRuns: rounds(300, 60) },
    );
  });
});

describe('names and cursors', () => {
  it('names are parsed to an alias that is written the same again', () => {
    const anything = fc.oneof(
      text,
      fc.array(fc.oneof(part, fc.constantFrom('', ':')), { maxLength: 5 }).map((parts) => parts.join(':')),
    );
    fc.assert(
      fc.property(anything, (value) => {
        const alias = parseAlias(value);
        const parts = value.split(':');
        expect(alias !== undefined).toBe(parts.length <= 2 && parts.every((one) => one !== ''));
        if (alias) expect(parseAlias(aliasText(alias))).toEqual(alias);
      }),
    );
  });

  it('an ETag keeps its one form', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          hex,
          hex.map((digits) => `"${digits}"`),
          fc.constantFrom('W/"a"', '*', '"', '""'),
        ),
        (value) => {
          const etag = normalEtag(value);
          if (etag === undefined) return;
          expect(etag).toMatch(/^"[^"]+"$/);
          expect(normalEtag(etag)).toBe(etag);
          expect(etag.replaceAll('"', '')).toBe(value.replaceAll('"', ''));
        },
      ),
      { numRuns: rounds(500, 100) },
    );
  });

  it('cursors decode to what they were made of, and no other text decodes', () => {
    fc.assert(
      fc.property(text, fc.oneof(fc.string(), fc.base64String()), (key, other) => {
        expect(decodeCursor(encodeCursor(key))).toBe(key);
        expectDocumented(() => expect(encodeCursor(decodeCursor(other))).toBe(other));
      }),
    );
  });
});
