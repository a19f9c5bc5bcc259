/**
 * `missing`: the execution never started, or ended longer ago than AWS remembers. `foreign`: AWS does not say, because the execution belongs to another
 * account or region, to an Express workflow, or to a state machine or a function that the deployment may not describe. Third-party
 * clients may write records that name such executions.
 */
export type ExecutionState = 'running' | 'ended' | 'missing' | 'foreign';

/** What AWS says about an execution. */
export interface Described {
  state: ExecutionState;
  /** Undefined if AWS says nothing about the execution. */
  status?: string | undefined;
  /** Epoch milliseconds. */
  stoppedAt?: number | undefined;
  /** When the execution was last redriven, after an earlier end. Epoch milliseconds. */
  redrivenAt?: number | undefined;
}
