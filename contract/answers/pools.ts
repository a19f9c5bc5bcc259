import * as z from 'zod/mini';
import type { Json } from '../../shared/aws/attributes.ts';
import { MODES } from '../../shared/permits/modes.ts';
import type { HolderView, PermitView, PoolView } from '../../shared/permits/views.ts';
import { always, component, count, flag, instant, json, list, nullable, number, oneOf, text } from '../schema.ts';
import { waiter } from './waiters.ts';

export const mode = () => oneOf(MODES, 'Of a permit: beside other holders, or alone.');
export const weight = () => count('Of a permit: how much it weighs. 1,000,000 for one who has the key alone.');
export const used = () =>
  count('The total weight of all holders of a pool, with expired holders whose room no caller has needed.');

const holderFields = () => ({
  holder: text('Who holds it, as the caller named itself.'),
  fence: count('The fencing token of the permit.'),
  mode: mode(),
  weight: weight(),
  expiresAt: instant('When it ends unless a heartbeat extends it.'),
});

/** What LeaseHeld tells of each holder. */
export const holder = component<HolderView>()(
  'PermitHolder',
  'One of those who hold permits of a pool.',
  z.strictObject(holderFields()),
);

const permit = component<PermitView>()(
  'Permit',
  'A permit as anybody sees it.',
  z.strictObject({
    ...holderFields(),
    state: oneOf(['held', 'expired'], 'Whether its time is over. Until its place is needed, a heartbeat revives it.'),
    acquiredAt: instant('When it was granted.'),
    remainingMs: count('How much of it was left when the service answered, in milliseconds.'),
    ttlSeconds: number('What each heartbeat extends it by, in seconds.'),
    execution: nullable(
      text(
        'The ARN of the execution that holds the permit, or held the permit when that execution ended. Null if there is no such execution.',
      ),
    ),
    inGrace: flag(
      'True if that execution has ended, and the holder may go on for its grace, or for as long as the holder sends heartbeats.',
    ),
    ending: flag(
      'True if an operator broke the permit, which stays until its holder releases the permit or its ttl ends.',
    ),
    brokenAt: nullable(instant('When the operator broke the permit. Null if `ending` is false.')),
    brokenBy: nullable(
      text(
        'The operator: an IAM ARN or the subject of a JWT, up to 256 characters. Null also if the API did not authenticate the operator.',
      ),
    ),
    data: json<Json>('What the holder left for others to see. Null where there is nothing.'),
  }),
);

export const pool = component<PoolView>()(
  'Pool',
  'A pool as anybody sees it.',
  z.strictObject({
    kind: always('pool'),
    key: text('The name of the pool.'),
    used: used(),
    limit: nullable(count('The limit that the last grant named. Null if no grant has named a limit.')),
    limitBy: nullable(text('The holder whose grant named that limit. Null if the record does not say.')),
    holders: list(permit, 'Those that came first, first.'),
    waiting: count(
      'How many tasks and callers are in line for a permit, counted up to 100, or up to `limit` where that is more and `waiters` lists them. A lower bound while rows of 200 callers that gave up stand in line.',
    ),
    waiters: z.exactOptional(list(waiter, 'The oldest of those, where the caller asked for them.')),
  }),
);
