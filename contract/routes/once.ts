import * as z from 'zod/mini';
import type { beginOnce } from '../../shared/once/begin.ts';
import type { completeOnce } from '../../shared/once/complete.ts';
import type { forgetOnce } from '../../shared/once/forget.ts';
import type { readOnce } from '../../shared/once/read.ts';
import { begun, completed, forgotten, onceKey, oncePage } from '../answers/once.ts';
import { examplesOf } from '../examples.ts';
import { onceBeginRequest, onceCompleteRequest, onceForgetRequest, readOnceRequest } from '../requests/once.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

export const ONCE_ROUTES = [
  route<AnswerOf<typeof beginOnce>>({
    function: 'onceBegin',
    method: 'POST',
    path: '/v1/once/begin',
    tag: 'Leases',
    summary: 'Begin a slot',
    description:
      'Lets one caller at a time work for a slot of a key. When the slot is done, every caller receives the stored result instead. While you work, extend the grant with `heartbeat`. Then call `complete`, or `release` if the work has failed: the next caller then begins the same slot.',
    request: onceBeginRequest,
    success: {
      200: { description: 'The grant, or the stored result of the slot, or which later slot is done.', answer: begun },
    },
    errors: ['LeaseHeld', 'LeaseLost', 'Conflict', 'OutcomeUnknown'],
    when: {
      LeaseHeld:
        'Another caller works for a slot of the key. The call has waited for `waitSeconds`. With `per`, add the fields of `retryWith` to the next call: it then goes on waiting for the same period, even if the next one has begun.',
      LeaseLost: 'The grant of the `requestId` was released, or an operator broke it.',
      Conflict:
        'The slot is done with another `inputHash`. Or, with `per`, a slot is done whose name sorts after every period. `actual` shows the key as it is now.',
    },
    examples: examplesOf('onceBegin'),
  }),
  route<AnswerOf<typeof completeOnce>>({
    function: 'onceComplete',
    method: 'POST',
    path: '/v1/once/complete',
    tag: 'Leases',
    summary: 'Complete a slot',
    description:
      'Stores the result of the slot and ends the grant. If the caller no longer holds the grant, the result is not stored, and `completed` is false.',
    request: onceCompleteRequest,
    success: { 200: { description: 'Whether the result of this caller is stored.', answer: completed } },
    errors: ['OutcomeUnknown'],
    examples: examplesOf('onceComplete'),
  }),
  route<AnswerOf<typeof forgetOnce>>({
    function: 'onceForget',
    method: 'POST',
    path: '/v1/once/forget',
    tag: 'Leases',
    summary: 'Forget a slot',
    description:
      'For an operator: forgets the slot that is done and its result, so that the next caller does the work again.',
    request: onceForgetRequest,
    success: { 200: { description: 'The key remembers no slot.', answer: forgotten } },
    errors: ['NotFound', 'Conflict', 'LeaseHeld', 'OutcomeUnknown'],
    when: {
      NotFound: 'No caller has begun a slot of the key.',
      Conflict: 'The key has another fence. `actual` shows the key as it is now.',
      LeaseHeld: 'A caller works for a slot of the key. Break that grant first.',
    },
    scope: 'breakScope',
    examples: examplesOf('onceForget'),
  }),
  route<AnswerOf<typeof readOnce>>({
    function: 'readOnce',
    method: 'GET',
    path: '/v1/once',
    tag: 'Leases',
    summary: 'Read a key of once, or list such keys',
    description:
      'With `key`, reads who works for a slot of that key, which slot is done, and its result. Without `key`, lists keys page by page, without results. A page reads up to 1,000 records of the leases table.',
    request: readOnceRequest,
    success: { 200: { description: 'The key, or the page.', answer: z.union([onceKey, oncePage]) } },
    errors: [],
    examples: examplesOf('readOnce'),
  }),
];
