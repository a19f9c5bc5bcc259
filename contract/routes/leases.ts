import * as z from 'zod/mini';
import type { acquire } from '../../shared/locks/calls/acquire.ts';
import type { breakByFence } from '../../shared/locks/calls/break.ts';
import type { extendGrant } from '../../shared/locks/calls/heartbeat.ts';
import type { readKeyOrList } from '../../shared/locks/calls/read.ts';
import type { releaseGrant } from '../../shared/locks/calls/release.ts';
import { acquired, broken, grant, keyPage, oneKey, parked, released } from '../answers/leases.ts';
import { examplesOf } from '../examples.ts';
import {
  acquireRequest,
  breakRequest,
  heartbeatRequest,
  readLeasesRequest,
  releaseRequest,
} from '../requests/leases.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

export const LEASE_ROUTES = [
  route<AnswerOf<typeof acquire>>({
    function: 'acquire',
    method: 'POST',
    path: '/v1/leases/acquire',
    tag: 'Leases',
    summary: 'Acquire a lease or a permit',
    description:
      'Grants the key to the caller alone (a lease), or with `limit` or `mode` `shared` together with other holders (a permit). If there is no room, the call waits in line for up to `waitSeconds`, and then fails with `LeaseHeld`. With `taskToken` or `callbackId`, the call returns at once, and a Step Functions task or a durable function waits instead.',
    request: acquireRequest,
    success: {
      201: {
        description: 'The caller has its grant, or its task is parked, was notified, or has ended.',
        answer: z.union([acquired, parked]),
      },
      200: {
        description: 'A retry of a request that already has its grant.',
        answer: acquired,
      },
    },
    errors: ['LeaseHeld', 'LeaseLost', 'Superseded', 'QueueFull', 'OutcomeUnknown'],
    when: {
      LeaseHeld:
        'Another caller holds the key, the holders leave no room, or others wait in line, and the wait of the call has ended. A parked task or callback fails with this code after `parkSeconds`.',
      LeaseLost:
        'The request has lost its grant: the grant was released, broken or taken over. Or an operator cancelled the ticket, or the caller withdrew the request. A parked task or callback fails with this code in the same cases.',
    },
    examples: examplesOf('acquire'),
  }),
  route<AnswerOf<typeof extendGrant>>({
    function: 'heartbeat',
    method: 'POST',
    path: '/v1/leases/heartbeat',
    tag: 'Leases',
    summary: 'Extend a lease or a permit',
    description:
      'Extends the grant by its ttl, with the same fence. Call it well before the grant expires. A heartbeat also revives an expired grant, unless another grant has replaced it.',
    request: heartbeatRequest,
    success: { 200: { description: 'The caller still holds the lease or the permit.', answer: grant } },
    errors: ['LeaseLost', 'OutcomeUnknown'],
    when: {
      LeaseLost:
        'The caller does not hold the grant, an operator broke it, or a newer request asks the holder to stop. Stop the work. If the reason is `broken` or `superseded`, then call `release`, because the next caller may be waiting for it.',
    },
    examples: examplesOf('heartbeat'),
  }),
  route<AnswerOf<typeof releaseGrant>>({
    function: 'release',
    method: 'POST',
    path: '/v1/leases/release',
    tag: 'Leases',
    summary: 'Release a lease or a permit',
    description:
      'Ends the grant, and gives the key to the next waiter. If the caller does not hold the grant, the call still succeeds, so a program can always release when it cleans up.',
    request: releaseRequest,
    success: { 200: { description: 'Whether the caller held the lease or the permit.', answer: released } },
    errors: ['OutcomeUnknown'],
    examples: examplesOf('release'),
  }),
  route<AnswerOf<typeof breakByFence>>({
    function: 'breakLease',
    method: 'POST',
    path: '/v1/leases/break',
    tag: 'Leases',
    summary: 'Break a lease or a permit',
    description:
      'For an operator, when a holder is stuck: ends the grant with this fence, at once or, with `wait`, at its release or its expiry. The next heartbeat of the holder and a retry of its acquire fail with `LeaseLost` (`broken`). If the holder works on regardless, only a store that checks the fence refuses its writes.',
    request: breakRequest,
    success: { 200: { description: 'The grant has ended, or is ending.', answer: broken } },
    errors: ['NotFound', 'Conflict', 'OutcomeUnknown'],
    when: {
      NotFound: 'No caller holds the key, or none of its shared grants has this fence.',
      Conflict: 'The exclusive holder of the key has another fence. `actual` shows the key as it is now.',
    },
    scope: 'breakScope',
    examples: examplesOf('breakLease'),
  }),
  route<AnswerOf<typeof readKeyOrList>>({
    function: 'readLeases',
    method: 'GET',
    path: '/v1/leases',
    tag: 'Leases',
    summary: 'Read a key, or list keys',
    description:
      'With `key`, reads that key, its holders and its line. Without `key`, lists keys page by page. A page without `sort` costs 0.5 read units for each 4 KiB of records that it reads, and a page with `sort` reads the whole table. For the first few keys in an order, send `sort` and a small `limit`. To read all keys, leave out `sort` and sort the rows yourself.',
    request: readLeasesRequest,
    success: {
      200: { description: 'The key, or the page.', answer: z.union([oneKey, keyPage]) },
    },
    errors: [],
    examples: examplesOf('readLeases'),
  }),
];
