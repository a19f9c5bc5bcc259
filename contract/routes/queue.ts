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
      'For an operator: takes the waiter with this ticket out of the line. Its task or call fails with `LeaseLost` (`cancelled`). A caller takes out its own request with `withdraw`.',
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
      'For an operator: limits the total weight of the holders of a key, or the starts at its rates, whatever limits the callers name. A `limit` of 0 pauses the key. Current holders keep their grants, and the line keeps its order. Callers that the cap keeps out see its reason. To lift a part of the cap, send null: the line is then served.',
    request: capRequest,
    success: { 200: { description: 'The cap of the key from now on.', answer: capped } },
    errors: ['Conflict', 'OutcomeUnknown'],
    when: { Conflict: 'Other operators changed the cap of the key at the same time, five times in a row.' },
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
      'For an operator: moves the waiter with this ticket to the front, so that it receives the next grant. Current holders keep their grants. Only one waiter of a key can be moved at a time, and the last call counts. No other waiter is served while the moved one does not fit or sleeps.',
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
      'For a caller that stops waiting: takes its request out of the line, or ends its grant. The request id, the holder and the authenticated caller must be those of the acquisition. A call of the request that is still in line fails with `LeaseLost`. If the request had a grant, a retry also fails with `LeaseLost`: until the next grant of the key or, after a permit or a grant to a waiter, until eight more such grants have ended. A request that was withdrawn in line is not remembered, so a duplicate that arrives later may receive a grant: withdraw after the last try.',
    request: withdrawRequest,
    success: { 200: { description: 'Whether the request waited or had a grant.', answer: withdrawn } },
    errors: ['OutcomeUnknown'],
    examples: examplesOf('withdraw'),
  }),
];
