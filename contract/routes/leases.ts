import * as z from 'zod/mini';
import type { acquireOrParkLease } from '../../shared/leases/acquire.ts';
import type { breakLeaseByFence } from '../../shared/leases/break.ts';
import type { extendLease } from '../../shared/leases/heartbeat.ts';
import type { releaseLease } from '../../shared/leases/release.ts';
import type { lookUp } from '../../shared/locks/read.ts';
import { acquired, broken, grant, keyPage, leaseWithQueue, parked, released } from '../answers/leases.ts';
import { pool } from '../answers/pools.ts';
import {
  acquireRequest,
  breakRequest,
  heartbeatRequest,
  readLeasesRequest,
  releaseRequest,
} from '../requests/leases.ts';
import type { AnswerOf } from '../schema.ts';
import { PERMIT_EXAMPLE, POOL_EXAMPLE, WRONG_KIND_EXAMPLE } from './pool-examples.ts';
import { route } from './route.ts';

const LEASE_ID = 'da91f8eb-f757-4f74-81a5-86d441d75bcf';
const FENCE = 1795215137091;
const acquiredAt = '2026-11-20T22:52:17.091Z';
const key = 'nightly-report';

const granted = {
  key,
  holder: 'worker-1',
  leaseId: LEASE_ID,
  version: '32a2edb5-afa8-4793-9a45-f0fc12b37590',
  fence: FENCE,
  acquiredAt,
  expiresAt: '2026-11-20T22:53:17.091Z',
  remainingMs: 59994,
};
const held = {
  key,
  state: 'held',
  holder: 'worker-1',
  fence: FENCE,
  acquiredAt,
  expiresAt: '2026-11-20T22:53:17.204Z',
  remainingMs: 59976,
  ttlSeconds: 60,
  execution: null,
  inGrace: false,
  ending: false,
  brokenAt: null,
  brokenBy: null,
  data: null,
};
const BROKEN = {
  ...{ key, broken: true, fence: FENCE, holder: 'worker-1' },
  ...{ holderUntil: '2026-11-20T22:53:17.204Z', lastHeartbeatAt: '2026-11-20T22:52:17.204Z' },
};
const ticket = '000001795215137091-4f0c1a3e-6a52-4a3b-9b44-3f1f4e1b7a10';

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
    examples: [
      {
        name: 'granted',
        summary: 'A grant',
        request: { key, holder: 'worker-1', ttlSeconds: 60, requestId: 'run-42' },
        status: 201,
        answer: {
          ...granted,
          waitedMs: 6,
          repeated: false,
          previous: { holder: 'worker-0', fence: 1795215094480, ended: 'released', at: '2026-11-20T22:51:36.912Z' },
        },
      },
      {
        name: 'repeated',
        summary: 'The same request again',
        request: { key, holder: 'worker-1', ttlSeconds: 60, requestId: 'run-42' },
        status: 200,
        answer: { ...granted, waitedMs: 6, repeated: true, previous: null },
      },
      {
        name: 'held',
        summary: 'Another caller holds it, and still does after the wait',
        request: { key, holder: 'worker-2', waitSeconds: 1, requestId: 'run-43' },
        status: 409,
        answer: {
          type: 'urn:holdfast:error:LeaseHeld',
          title: 'Someone else holds the lease',
          status: 409,
          code: 'LeaseHeld',
          detail: 'the lease is held by worker-1',
          traceId: '3ba08391-5d72-4da5-add5-973d8369e325',
          key,
          holder: 'worker-1',
          fence: FENCE,
          expiresAt: '2026-11-20T22:53:17.091Z',
          retryAfterMs: 60396,
          waiting: 2,
          place: 1,
          retryWith: { requestId: 'run-43', ticket },
        },
      },
      PERMIT_EXAMPLE,
      WRONG_KIND_EXAMPLE,
      {
        name: 'parked',
        summary: 'A task that waits',
        request: { key, holder: 'worker-3', taskToken: 'AQCEAAAAKgAAAAM', parkSeconds: 3600 },
        status: 201,
        answer: { key, holder: 'worker-3', ticket, parked: true },
      },
    ],
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
    examples: [
      {
        name: 'extended',
        summary: 'A longer lease',
        request: { key, leaseId: LEASE_ID },
        status: 200,
        answer: { ...granted, expiresAt: '2026-11-20T22:53:17.204Z', remainingMs: 59996 },
      },
    ],
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
    examples: [
      {
        name: 'released',
        summary: 'A release',
        request: { key, leaseId: LEASE_ID },
        status: 200,
        answer: { key, released: true },
      },
      {
        name: 'notReleased',
        summary: 'Too late',
        request: { key, leaseId: LEASE_ID },
        status: 200,
        answer: { key, released: false, reason: 'taken' },
      },
    ],
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
    examples: [
      {
        name: 'ending',
        summary: 'The holder is to stop, and keeps the key until it has stopped',
        request: { key, fence: FENCE, wait: true },
        status: 200,
        answer: { ...BROKEN, ended: false },
      },
      {
        name: 'broken',
        summary: 'A holder that was stuck',
        request: { key, fence: FENCE },
        status: 200,
        answer: { ...BROKEN, ended: true },
      },
    ],
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
    examples: [
      {
        name: 'one',
        summary: 'One lease',
        request: { key },
        status: 200,
        answer: { ...held, kind: 'lease', hasRecord: true, previous: null, waiting: 0 },
      },
      POOL_EXAMPLE,
      {
        name: 'page',
        summary: 'All keys that have a holder',
        request: { state: 'held', limit: 10 },
        status: 200,
        answer: { leases: [{ ...held, kind: 'lease', waiting: 0 }], nextCursor: null },
      },
    ],
  }),
];
