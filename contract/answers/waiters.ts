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
      'A parked Step Functions task, the callback of a durable function, or a call of `acquire` that waits.',
    ),
    ticket: text(MEANING.ticket),
    holder: text(MEANING.holder),
    execution: nullable(text('The ARN of the execution that waits for the grant. Null if the request named none.')),
    parkedAt: instant('When the wait began. A call that keeps its position keeps this instant.'),
    deadline: instant(
      'When the wait ends with `LeaseHeld`. For a call: when the current call ends, though its program may call again. For a caller that sleeps: when it loses its place.',
    ),
    dueAt: nullable(
      instant('For a caller that sleeps between two calls: when its next call must come. Null for every other waiter.'),
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
        'What the request replaces: older requests that wait, or also the holder. Absent if the request did not say `replace`.',
      ),
    ),
  }),
);
