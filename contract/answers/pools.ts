import * as z from 'zod/mini';
import type { Json } from '../../shared/aws/attributes.ts';
import { MODES } from '../../shared/permits/modes.ts';
import type { HolderView, PermitView, PoolView } from '../../shared/permits/views.ts';
import { MEANING, orNull } from '../meanings.ts';
import {
  always,
  component,
  count,
  described,
  flag,
  instant,
  json,
  list,
  nullable,
  number,
  oneOf,
  text,
} from '../schema.ts';
import { waiter } from './waiters.ts';

export const mode = () => oneOf(MODES, MEANING.mode);
export const weight = () => count(MEANING.weight);
export const used = () => count(MEANING.used);

/** Of a permit whose limit differs from that of the grant before. */
export const limitChanged = () =>
  described(
    z.strictObject({
      from: count('The limit that the grant before named.'),
      to: count('The limit of this permit.'),
    }),
    { description: 'Both limits, if the grant before named another limit.' },
  );

const holderFields = () => ({
  holder: text(MEANING.holder),
  fence: count(MEANING.fence),
  mode: mode(),
  weight: weight(),
  expiresAt: instant(MEANING.expiresAt),
});

/** What LeaseHeld tells of each holder. */
export const holder = component<HolderView>()('PermitHolder', 'A holder of a pool.', z.strictObject(holderFields()));

const permit = component<PermitView>()(
  'Permit',
  'A permit, as every reader sees it.',
  z.strictObject({
    ...holderFields(),
    state: oneOf(
      ['held', 'expired'],
      'Whether the permit has expired. A heartbeat revives an expired permit, until another caller needs its room.',
    ),
    acquiredAt: instant(MEANING.acquiredAt),
    remainingMs: count(MEANING.remainingMs),
    ttlSeconds: number(MEANING.ttlSeconds),
    execution: nullable(text(MEANING.execution)),
    bound: flag(MEANING.bound),
    inGrace: flag(MEANING.inGrace),
    ending: flag(MEANING.ending),
    brokenAt: nullable(instant('When the operator broke the permit. Null if `ending` is false.')),
    brokenBy: nullable(
      text(
        'The operator that broke it: an IAM ARN or the subject of a JWT, up to 256 characters. Null if the API did not authenticate the operator.',
      ),
    ),
    data: json<Json>(`${MEANING.data} Null if there is none.`),
  }),
);

export const pool = component<PoolView>()(
  'Pool',
  'A pool with its line.',
  z.strictObject({
    kind: always('pool', 'The kind of the key.'),
    key: text(MEANING.key),
    used: used(),
    limit: nullable(count(MEANING.limit)),
    limitBy: nullable(text(orNull('The holder whose grant named that limit.'))),
    holders: list(permit, 'The permits, in the order of their grants.'),
    waiting: count(MEANING.waiting),
    waiters: z.exactOptional(list(waiter, 'The oldest of those in line, if the request has `waiters`.')),
  }),
);
