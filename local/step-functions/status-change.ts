import type { BusEvent } from '../events.ts';
import { type Execution, redriveStatus } from './execution.ts';

/** The event of a Standard workflow on the default event bus, at the start, at a redrive and at each end of an execution. */
export function statusChange(execution: Execution): BusEvent {
  const { arn, machine, name, status, startedAt, stoppedAt, redrives, input, output, error, cause } = execution;
  const included = (text: string | undefined) => (text === undefined ? null : { included: true });
  return {
    source: 'aws.states',
    'detail-type': 'Step Functions Execution Status Change',
    resources: [arn],
    detail: {
      executionArn: arn,
      stateMachineArn: machine.arn,
      stateMachineVersionArn: null,
      stateMachineAliasArn: null,
      name,
      status,
      startDate: startedAt.getTime(),
      stopDate: stoppedAt?.getTime() ?? null,
      redriveCount: redrives.length,
      redriveDate: redrives.at(-1)?.at.getTime() ?? null,
      ...{ redriveStatusReason: null, ...redriveStatus(execution) },
      input,
      inputDetails: included(input),
      output: output ?? null,
      outputDetails: included(output),
      error: error ?? null,
      cause: cause ?? null,
    },
  };
}
