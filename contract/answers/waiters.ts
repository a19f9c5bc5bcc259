import * as z from 'zod/mini';
import type { WaiterView } from '../../shared/line/listed-waiters.ts';
import { component, instant, nullable, oneOf, text } from '../schema.ts';

export const waiter = component<WaiterView>()(
  'Waiter',
  'A task or a call in line for a lease.',
  z.strictObject({
    kind: oneOf(['task', 'caller'], 'A parked task, or a call of `acquire` that waits.'),
    ticket: text('Its place in the queue. Tickets sort by age.'),
    holder: text('Who waits.'),
    execution: nullable(text('The ARN of the execution that would hold the lease.')),
    parkedAt: instant('Since when it waits. A caller that asks again in time keeps its ticket, and so this instant.'),
    deadline: instant(
      'When its wait ends with LeaseHeld. Of a caller: the wait of the present call. The client asks again then for as long as its own caller wants to wait, so the deadline of a caller does not say when it gives up.',
    ),
  }),
);
