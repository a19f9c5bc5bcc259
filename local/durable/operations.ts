import type { ErrorObject, Operation, OperationUpdate } from '@aws-sdk/client-lambda';
import { invalid, LambdaError } from './errors.ts';

interface Change {
  update: OperationUpdate;
  /** The operation before the update. Undefined if the update starts the operation. */
  before: Operation | undefined;
  now: Date;
  /** How long a second takes, in milliseconds. */
  secondMs: number;
}

/** The status of an operation after each action of a checkpoint. */
const STATUS_AFTER = {
  START: 'STARTED',
  SUCCEED: 'SUCCEEDED',
  FAIL: 'FAILED',
  RETRY: 'PENDING',
  CANCEL: 'CANCELLED',
} as const;

export const isOver = ({ Status }: Operation): boolean =>
  Status !== 'STARTED' && Status !== 'PENDING' && Status !== 'READY';

const NAME = /^[ -~]{1,256}$/;

/**
 * An operation after an update of the SDK.
 * @throws LambdaError ValidationException for a name that AWS does not allow; InvalidParameterValueException for a second start, an update after the end, or
 * an operation that the local stack does not run
 */
export function updated({ update, before, now, secondMs }: Change): Operation {
  const { Action, Type, Name } = update;
  if (Name !== undefined && !NAME.test(Name))
    throw new LambdaError('ValidationException', `Name must have 1 to 256 printable ASCII characters: '${Name}'`);
  if (!Action || !(Action in STATUS_AFTER)) throw invalid(`Invalid action: ${Action}`);
  if (Type !== 'STEP' && Type !== 'WAIT' && Type !== 'CALLBACK' && Type !== 'CONTEXT')
    throw invalid(`the local stack does not run operations of the type ${Type}`);
  if (before && (Action === 'START' ? before.Status !== 'READY' : isOver(before)))
    throw invalid(`Invalid ${Action} of an operation that is ${before.Status}`);
  const operation: Operation = {
    ...{ Id: update.Id, ParentId: update.ParentId, Name, Type, SubType: update.SubType },
    ...{ StartTimestamp: before?.StartTimestamp ?? now, Status: STATUS_AFTER[Action] },
  };
  if (isOver(operation)) operation.EndTimestamp = now;
  return { ...operation, ...details({ update, before, now, secondMs }) };
}

function details({ update, before, now, secondMs }: Change): Partial<Operation> {
  const { Action, Payload: Result } = update;
  const inSeconds = (seconds = 0) => new Date(now.getTime() + seconds * secondMs);
  switch (update.Type) {
    case 'STEP': {
      const Attempt = (before?.StepDetails?.Attempt ?? 0) + (Action === 'START' ? 0 : 1);
      const next = Action === 'RETRY' && {
        NextAttemptTimestamp: inSeconds(update.StepOptions?.NextAttemptDelaySeconds),
      };
      return { StepDetails: { Attempt, ...next, Result, Error: update.Error } };
    }
    case 'WAIT':
      return {
        WaitDetails: before?.WaitDetails ?? { ScheduledEndTimestamp: inSeconds(update.WaitOptions?.WaitSeconds) },
      };
    case 'CALLBACK':
      return { CallbackDetails: { CallbackId: newCallbackId() } };
    default:
      return { ContextDetails: { Result, Error: update.Error, ReplayChildren: update.ContextOptions?.ReplayChildren } };
  }
}

/** An opaque token in standard base64, as AWS sends. */
const newCallbackId = () => Buffer.from(crypto.getRandomValues(new Uint8Array(64))).toString('base64');

/** A callback after its result, its failure, or its timeout. */
export const answered = (
  callback: Operation,
  answer: { Result?: string; Error?: ErrorObject },
  now: Date,
): Operation => ({
  ...callback,
  Status: answer.Error ? 'FAILED' : 'SUCCEEDED',
  EndTimestamp: now,
  CallbackDetails: { ...callback.CallbackDetails, ...answer },
});

/** When the operation changes by time alone: at the end of a wait, or at the next attempt of a step. */
export const dueAt = ({ Status, WaitDetails, StepDetails }: Operation): Date | undefined =>
  Status === 'STARTED'
    ? WaitDetails?.ScheduledEndTimestamp
    : Status === 'PENDING'
      ? StepDetails?.NextAttemptTimestamp
      : undefined;

/** The operation at that time: a wait has ended, or a step is ready for its next attempt. */
export const afterDue = (operation: Operation, now: Date): Operation =>
  operation.Type === 'WAIT'
    ? { ...operation, Status: 'SUCCEEDED', EndTimestamp: now }
    : { ...operation, Status: 'READY' };

/** The operation in the event of an invocation. Timestamps are epoch milliseconds. */
export const inMilliseconds = (operation: Operation): object =>
  JSON.parse(
    JSON.stringify(operation, function (this: Record<string, unknown>, field, value) {
      const date = this[field];
      return date instanceof Date ? date.getTime() : value;
    }),
  );
