import type { BusEvent } from '../events.ts';
import type { Execution } from './execution.ts';

/** The event of a Standard workflow on the default event bus, at the start and at the end of an execution. */
export function statusChange(execution: Execution): BusEvent {
  const { arn, machine, name, status, startedAt, stoppedAt, input, output, error, cause } = execution;
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
      redriveCount: 0,
      redriveDate: null,
      input,
      inputDetails: included(input),
      output: output ?? null,
      outputDetails: included(output),
      error: error ?? null,
      cause: cause ?? null,
    },
  };
}
