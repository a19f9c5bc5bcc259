import * as z from 'zod/mini';
import type { acquireOrParkLease } from '../../shared/leases/acquire.ts';
import type { breakLeaseByFence } from '../../shared/leases/break.ts';
import type { extendLease } from '../../shared/leases/heartbeat.ts';
import type { releaseLease } from '../../shared/leases/release.ts';
import type { lookUp } from '../../shared/locks/read.ts';
import { acquired, broken, grant, keyPage, leaseWithQueue, parked, released } from '../answers/leases.ts';
import { pool } from '../answers/pools.ts';
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
  route<AnswerOf<typeof acquireOrParkLease>>({
    function: 'acquire',
    method: 'POST',
    path: '/v1/leases/acquire',
    tag: 'Leases',
    summary: 'Take a lease, or learn who holds it',
    description:
      'Takes the lease of a key. If another caller holds the lease, waits in line up to `waitSeconds`, or answers LeaseHeld with the holder and the expiry. With a `taskToken`, parks a Step Functions task in the line of the key. With `limit` or `mode`, takes a permit of a pool in the same way: several callers hold permits of a pool at once. If other callers use the key as the other kind, answers WrongKind at once, also with `waitSeconds`.',
    request: acquireRequest,
    success: {
      201: {
        description: 'The caller holds the lease, or its task is parked.',
        answer: z.union([acquired, parked]),
      },
      200: {
        description: 'The caller holds the lease by an earlier try of this request.',
        answer: acquired,
      },
    },
    errors: ['LeaseHeld', 'WrongKind', 'LeaseLost', 'QueueFull', 'OutcomeUnknown'],
    examples: examplesOf('acquire'),
  }),
  route<AnswerOf<typeof extendLease>>({
    function: 'heartbeat',
    method: 'POST',
    path: '/v1/leases/heartbeat',
    tag: 'Leases',
    summary: 'Extend a lease',
    description: 'Extends a lease that the caller holds, or one of its own that expired and that nobody took.',
    request: heartbeatRequest,
    success: { 200: { description: 'The caller still holds the lease.', answer: grant } },
    errors: ['LeaseLost', 'OutcomeUnknown'],
    examples: examplesOf('heartbeat'),
  }),
  route<AnswerOf<typeof releaseLease>>({
    function: 'release',
    method: 'POST',
    path: '/v1/leases/release',
    tag: 'Leases',
    summary: 'Give a lease back',
    description: 'Gives a lease back; the first in line gets it. A release by anybody but the holder is no error.',
    request: releaseRequest,
    success: { 200: { description: 'Whether the caller held the lease.', answer: released } },
    errors: ['OutcomeUnknown'],
    examples: examplesOf('release'),
  }),
  route<AnswerOf<typeof breakLeaseByFence>>({
    function: 'breakLease',
    method: 'POST',
    path: '/v1/leases/break',
    tag: 'Leases',
    summary: 'End the lease or the permit that an operator saw',
    description:
      'Ends a lease or a permit, named by its fence: at once, or with `wait` when the holder releases the grant or the ttl ends. Only the fence stops later writes of the holder.',
    request: breakRequest,
    success: { 200: { description: 'The lease or the permit has ended, or is ending.', answer: broken } },
    errors: ['NotFound', 'Conflict', 'OutcomeUnknown'],
    scope: 'breakScope',
    examples: examplesOf('breakLease'),
  }),
  route<AnswerOf<typeof lookUp>>({
    function: 'readLeases',
    method: 'GET',
    path: '/v1/leases',
    tag: 'Leases',
    summary: 'Read one key, or a page of keys',
    description:
      'With `key`, reads the lease or the pool of that key, and counts the waiters in line. Without `key`, lists all keys page by page.',
    request: readLeasesRequest,
    success: {
      200: { description: 'The lease, the pool, or the page.', answer: z.union([leaseWithQueue, keyPage, pool]) },
    },
    errors: [],
    examples: examplesOf('readLeases'),
  }),
];
