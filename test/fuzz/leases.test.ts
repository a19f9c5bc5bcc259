import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../shared/aws/attributes.ts';
import { HoldfastError } from '../../shared/errors.ts';
import { grantItem } from '../../shared/leases/grant.ts';
import { parseRecord } from '../../shared/leases/record.ts';
import { leaseHeld, leaseView } from '../../shared/leases/views.ts';
import { decodeCursor, encodeCursor } from '../../shared/listings/cursor.ts';
import { anyText } from '../support/chance/text.ts';
import { lambdaContext, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { rounds } from '../support/time/rounds.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const { handlers } = await leaseWorld();
const text = anyText({ minLength: 1, maxLength: 40 });
const btoaUtf8 = (value: string) => Buffer.from(value).toString('base64url');
const epochMs = fc.integer({ min: 0, max: 8.64e15 });

describe('records', () => {
  it('records read back as they were written', () => {
    const grants = fc.record({
      key: text,
      version: fc.uuid(),
      leaseId: fc.uuid(),
      ttlSeconds: fc.integer({ min: 2, max: 86_400 }),
      holder: text,
      principal: fc.option(text, { nil: undefined }),
      requestId: text,
      fence: fc.maxSafeNat(),
      data: fc.option(fc.jsonValue() as fc.Arbitrary<Json>, { nil: undefined }),
      execution: fc.option(text, { nil: undefined }),
      target: fc.option(text, { nil: undefined }),
      acquiredAt: epochMs,
    });
    fc.assert(
      fc.property(grants, (grant) => {
        const { ttlSeconds, ...kept } = grant;
        expect(parseRecord(grantItem(grant))).toMatchObject({
          ...kept,
          // JSON has no negative zero
          data: kept.data === undefined ? undefined : JSON.parse(JSON.stringify(kept.data)),
          expiresAt: grant.acquiredAt + ttlSeconds * 1000,
          leaseExpirySeconds: Math.ceil((grant.acquiredAt + ttlSeconds * 1000) / 1000),
          ttlMs: ttlSeconds * 1000,
          releasedAt: undefined,
          brokenAt: undefined,
        });
      }),
    );
  });

  it('records of any other writer can be read', () => {
    const value = fc.oneof(
      fc.record({ S: fc.string() }),
      fc.record({ N: fc.oneof(fc.integer().map(String), fc.double({ noNaN: true }).map(String)) }),
      fc.record({ BOOL: fc.boolean() }),
      fc.record({ NULL: fc.constant(true) }),
    );
    const names = [
      'key',
      'lease_version',
      'lease_expiry',
      'expires_at',
      'fence',
      'data',
      'holder',
      'released_at',
      'acquired_at',
    ];
    const numbers = ['0', '-1', '1.5', '9e12', '8640000000000001', '9.9E+125', '-9.9E+125'].map((N) => ({ N }));
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), fc.oneof(value, fc.constantFrom(...numbers))), (item) => {
        const record = parseRecord(item as never);
        const view = leaseView('k', record, 1_767_225_600_123);
        expect(['held', 'expired', 'released', 'free']).toContain(view.state);
        expect(leaseHeld(record, 1_767_225_600_123, 500).retryAfterMs).toBeGreaterThan(0);
      }),
      { numRuns: rounds(1000, 80) },
    );
  });
});

describe('cursors', () => {
  it('decode to what they were made of', () => {
    fc.assert(
      fc.property(text, (key) => {
        expect(decodeCursor(encodeCursor(key))).toBe(key);
      }),
    );
  });

  it('cursors of any other make are refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), fc.string().map(btoaUtf8)), (cursor) => {
        try {
          expect(encodeCursor(decodeCursor(cursor))).toBe(cursor);
        } catch (error) {
          expect(error).toBeInstanceOf(HoldfastError);
        }
      }),
    );
  });
});

describe('any event whatever', () => {
  const field = fc.oneof(fc.jsonValue(), text, fc.integer(), fc.constant('__proto__'));
  const payload = fc.oneof(
    fc.jsonValue(),
    fc.dictionary(fc.constantFrom('key', 'holder', 'leaseId', 'fence', 'data', 'limit', 'state', 'x'), field),
  );
  const outcomes = ['ok', 'InvalidRequest', 'NotFound', 'LeaseHeld', 'LeaseLost', 'Conflict'];
  const handler = fc.constantFrom(...Object.values(handlers));

  it('any event as a task is answered as documented', async () => {
    await fc.assert(
      fc.asyncProperty(handler, payload, async (handler, payload) => {
        expect(outcomes).toContain((await throughTask(handler, payload)).outcome);
      }),
      { numRuns: rounds(300, 30) },
    );
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  it('any event through HTTP is answered as documented', async () => {
    const events = fc.record({
      version: fc.constant('2.0'),
      rawQueryString: fc.option(fc.oneof(fc.string(), fc.webQueryParameters()), { nil: undefined }),
      headers: fc.option(
        fc.oneof(fc.constant({ 'content-type': 'application/json' }), fc.dictionary(fc.string(), fc.string())),
        { nil: undefined },
      ),
      body: fc.option(
        fc.oneof(
          fc.string(),
          payload.map((value) => JSON.stringify(value)),
        ),
        { nil: undefined },
      ),
      isBase64Encoded: fc.boolean(),
      requestContext: fc.record({
        http: fc.record({ method: fc.constantFrom('GET', 'POST', 'PUT') }),
        authorizer: fc.option(fc.object(), { nil: undefined }),
      }),
    });
    await fc.assert(
      fc.asyncProperty(handler, events, async (handler, event) => {
        const { outcome, status } = await throughHttp(handler, event as never, lambdaContext());
        expect(outcomes).toContain(outcome);
        expect(status).toBeLessThan(500);
      }),
      { numRuns: rounds(300, 30) },
    );
  });
});
