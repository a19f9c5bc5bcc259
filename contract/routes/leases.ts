import * as z from 'zod/mini';
import type { acquire } from '../../shared/locks/calls/acquire.ts';
import type { breakByFence } from '../../shared/locks/calls/break.ts';
import type { extendGrant } from '../../shared/locks/calls/heartbeat.ts';
import type { lookUp } from '../../shared/locks/calls/read.ts';
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
      'Grants the key to the caller alone, or with `limit` or `mode` `shared` together with other holders. If there is no room, the call waits in line for up to `waitSeconds`, and then fails with `LeaseHeld`. With `taskToken` or `callbackId`, a task of Step Functions or a durable function waits in place of the call.',
    request: acquireRequest,
    success: {
      201: {
        description: 'The caller has its grant, or its task is parked or has ended.',
        answer: z.union([acquired, parked]),
      },
      200: {
        description: 'The request had its grant before.',
        answer: acquired,
      },
    },
    errors: ['LeaseHeld', 'LeaseLost', 'Superseded', 'QueueFull', 'OutcomeUnknown'],
    when: {
      LeaseHeld:
        'Another caller holds the lease, the holders leave no room, or other waiters are in line. The call has waited for `waitSeconds`, or for `maxWaitSeconds` of the deployment. A parked task or callback fails with this code after `parkSeconds`.',
      LeaseLost:
        'The grant of the `requestId` was released or has another holder. An operator broke it, or cancelled the ticket. Or the request was withdrawn. A parked task or callback fails with this code in the same cases.',
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
      'A heartbeat extends the grant of the caller, with the same fence. A heartbeat also revives an expired grant, if no other grant has replaced it.',
    request: heartbeatRequest,
    success: { 200: { description: 'The caller still holds the lease or the permit.', answer: grant } },
    errors: ['LeaseLost', 'OutcomeUnknown'],
    when: {
      LeaseLost:
        'The caller does not hold the grant, an operator broke it, or a newer request asks the holder to stop. Stop the work, and with the reason `broken` or `superseded` call `release` when the work has stopped: the next caller may wait for that release.',
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
      'Ends the grant, and hands the key to the next waiter. A release by another caller than the holder is no error.',
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
      'For an operator: ends the grant with this fence, at once or, with `wait`, at its release or its expiry. The next heartbeat of the holder, and a retry of its acquire, fail with `LeaseLost` (`broken`). Only the fence stops what the holder writes later.',
    request: breakRequest,
    success: { 200: { description: 'The grant has ended, or is ending.', answer: broken } },
    errors: ['NotFound', 'Conflict', 'OutcomeUnknown'],
    when: {
      NotFound: 'No caller holds the key, or no shared grant has the fence.',
      Conflict: 'The exclusive holder of the key has another fence. `actual` is what the key is now.',
    },
    scope: 'breakScope',
    examples: examplesOf('breakLease'),
  }),
  route<AnswerOf<typeof lookUp>>({
    function: 'readLeases',
    method: 'GET',
    path: '/v1/leases',
    tag: 'Leases',
    summary: 'Read a key, or list keys',
    description:
      'With `key`, reads that key with its holders and its line. Without `key`, lists keys page by page. Without `sort`, a page costs 0.5 read units for each 4 KiB of records that it reads. To read all pages, leave out `sort` and sort the rows yourself. For the first few rows, one call with `sort` and a small `limit` is enough.',
    request: readLeasesRequest,
    success: {
      200: { description: 'The key, or the page.', answer: z.union([oneKey, keyPage]) },
    },
    errors: [],
    examples: examplesOf('readLeases'),
  }),
];
