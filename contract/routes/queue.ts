import type { capKey } from '../../shared/locks/calls/cap.ts';
import type { runNext } from '../../shared/locks/calls/run-next.ts';
import type { cancelWaiter, withdrawOwnRequest } from '../../shared/locks/calls/withdraw.ts';
import { cancelled, capped, moved, withdrawn } from '../answers/leases.ts';
import { examplesOf } from '../examples.ts';
import { cancelRequest, capRequest, runNextRequest, withdrawRequest } from '../requests/leases.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

export const QUEUE_ROUTES = [
  route<AnswerOf<typeof cancelWaiter>>({
    function: 'cancelWaiter',
    method: 'POST',
    path: '/v1/leases/cancel',
    tag: 'Leases',
    summary: 'Cancel a waiter',
    description:
      'For an operator: takes a task or a call out of the line of a key, by its ticket. The task or the call fails with `LeaseLost` (`cancelled`). A caller withdraws its own request with `withdraw`.',
    request: cancelRequest,
    success: { 200: { description: 'Whether the task or the call was in line.', answer: cancelled } },
    errors: ['OutcomeUnknown'],
    scope: 'breakScope',
    examples: examplesOf('cancelWaiter'),
  }),
  route<AnswerOf<typeof capKey>>({
    function: 'capKey',
    method: 'POST',
    path: '/v1/leases/cap',
    tag: 'Leases',
    summary: 'Cap or pause a key',
    description:
      'For an operator: bounds what all holders of a key may weigh, and what may start at its rates, whatever its callers name. With `limit` 0 the key is paused. The holders keep what they have, and the line keeps its order. Each caller that the cap keeps out sees the reason. Null lifts a part of the cap, and then the line is served.',
    request: capRequest,
    success: { 200: { description: 'The cap of the key from now on.', answer: capped } },
    errors: ['Conflict', 'OutcomeUnknown'],
    when: { Conflict: 'Commands of other operators came first, five times in a row.' },
    scope: 'breakScope',
    examples: examplesOf('capKey'),
  }),
  route<AnswerOf<typeof runNext>>({
    function: 'runNext',
    method: 'POST',
    path: '/v1/leases/next',
    tag: 'Leases',
    summary: 'Move a waiter to the front',
    description:
      'For an operator: the waiter with the ticket is served before all others, once. The holders keep what they have. One waiter of a key is moved at a time, and the last call counts. While the waiter does not fit, or sleeps, no other waiter is served.',
    request: runNextRequest,
    success: { 200: { description: 'Whether the task or the call was in line.', answer: moved } },
    errors: ['OutcomeUnknown'],
    scope: 'breakScope',
    examples: examplesOf('runNext'),
  }),
  route<AnswerOf<typeof withdrawOwnRequest>>({
    function: 'withdraw',
    method: 'POST',
    path: '/v1/leases/withdraw',
    tag: 'Leases',
    summary: 'Withdraw a request',
    description:
      'Takes a request of the caller out of the line, or ends its grant: for a caller that gives up. The request, the holder and the authenticated caller must be those of the acquisition. A call in line then fails with `LeaseLost`. If the request had a grant, a retry fails with `LeaseLost` too: until the next grant of the key, or, after a permit or a grant to a waiter, until eight more such grants have ended. A request that was withdrawn in line is not remembered, and a duplicate that arrives later may receive a grant: withdraw after the last try.',
    request: withdrawRequest,
    success: { 200: { description: 'Whether the request waited or had a grant.', answer: withdrawn } },
    errors: ['OutcomeUnknown'],
    examples: examplesOf('withdraw'),
  }),
];
