import type { cancelWaiter, withdrawOwnRequest } from '../../shared/locks/withdraw.ts';
import { cancelled, withdrawn } from '../answers/leases.ts';
import { examplesOf } from '../examples.ts';
import { cancelRequest, withdrawRequest } from '../requests/leases.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

export const QUEUE_ROUTES = [
  route<AnswerOf<typeof cancelWaiter>>({
    function: 'cancelWaiter',
    method: 'POST',
    path: '/v1/leases/cancel',
    tag: 'Leases',
    summary: 'Take a task or a call out of the line',
    description:
      'An operator takes a task or a call out of the line of a key, by its ticket. The task or the call fails with LeaseLost. Callers take their own calls out of the line with `withdraw`.',
    request: cancelRequest,
    success: { 200: { description: 'Whether it waited.', answer: cancelled } },
    errors: ['OutcomeUnknown'],
    scope: 'breakScope',
    examples: examplesOf('cancelWaiter'),
  }),
  route<AnswerOf<typeof withdrawOwnRequest>>({
    function: 'withdraw',
    method: 'POST',
    path: '/v1/leases/withdraw',
    tag: 'Leases',
    summary: 'Withdraw an acquisition of your own',
    description:
      "Withdraws a call of the caller's own that waits in line, or the lease or the permit that it got: for a caller that has hung up, and does not know which. A call in line answers LeaseLost. A repeat of the request answers LeaseLost where the lease had been granted to it, until another caller has held the lease; of a permit, until eight others have ended. A request that was withdrawn before it had the lease is not remembered: a try of it that arrives later is a new acquisition, so withdraw after the last try. The request, the holder and the authenticated caller must be those of the acquisition.",
    request: withdrawRequest,
    success: { 200: { description: 'Whether there was something to withdraw.', answer: withdrawn } },
    errors: ['OutcomeUnknown'],
    examples: examplesOf('withdraw'),
  }),
];
