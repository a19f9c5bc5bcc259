import type { BusEvent } from '../events.ts';
import type { DurableExecution } from './execution.ts';

/** The event on the default event bus, at the start and at the end of a durable execution. */
export const statusChange = ({ arn, name, functionArn, status, startedAt, endedAt }: DurableExecution): BusEvent => ({
  source: 'aws.lambda',
  'detail-type': 'Durable Execution Status Change',
  resources: [],
  detail: {
    ...{ durableExecutionArn: arn, durableExecutionName: name, functionArn, status },
    ...{ startTimestamp: startedAt.toISOString(), ...(endedAt && { endTimestamp: endedAt.toISOString() }) },
  },
});
