import * as z from 'zod/mini';
import { REPLACES } from '../../shared/locks/calls/types.ts';
import type { WaiterView } from '../../shared/locks/line/listed-waiters.ts';
import { MEANING } from '../meanings.ts';
import { component, instant, nullable, oneOf, text } from '../schema.ts';

export const waiter = component<WaiterView>()(
  'Waiter',
  'A task, a callback or a call in line.',
  z.strictObject({
    kind: oneOf(
      ['task', 'callback', 'caller'],
      'A parked task of Step Functions, the callback of a durable function, or a call of `acquire` that waits.',
    ),
    ticket: text(MEANING.ticket),
    holder: text(MEANING.holder),
    execution: nullable(text('The ARN of the execution that would hold the lease or the permit.')),
    parkedAt: instant('When the wait began. A call that keeps its position keeps this instant.'),
    deadline: instant(
      'When the wait ends with `LeaseHeld`. For a call, when the present call ends: its program may ask again. For a caller that sleeps, when its place is given up.',
    ),
    dueAt: nullable(
      instant(
        'When a caller that sleeps between two calls is due at the latest. Null for a waiter that does not sleep.',
      ),
    ),
    movedBy: z.exactOptional(
      nullable(
        text(
          'The operator that moved the waiter to the front: an IAM ARN or the subject of a JWT. Null if the API did not authenticate the operator. Absent if no operator has moved it.',
        ),
      ),
    ),
    replace: z.exactOptional(
      oneOf(
        REPLACES,
        'What the request replaces: older requests that wait, or the holder too. Absent if it does not say `replace`.',
      ),
    ),
  }),
);
