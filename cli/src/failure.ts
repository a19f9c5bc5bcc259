import { type ErrorCode, type HoldfastError, isHoldfastError } from '../../client/src/errors.ts';
import { EXIT } from './exit-codes.ts';

/** An error of the caller or its environment, with a line for people and an exit code. */
export class Failure extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The command line or the configuration is wrong. */
export const misuse = (message: string): Failure => new Failure(message, EXIT.misuse);

/** Why Node could not use a file, without the code and the call. */
export const reasonOf = ({ code, message }: NodeJS.ErrnoException): string =>
  code === 'EISDIR' ? 'it is a folder' : message.replace(/^E\w+: |, \w+( '.*')?$/gs, '');

/** Nobody has said where the service is. */
export class NoEndpoint extends Failure {
  constructor() {
    super(
      'no endpoint: give --endpoint, set HOLDFAST_ENDPOINT, or write a profile (holdfast doctor --help)',
      EXIT.misuse,
    );
  }
}

const EXIT_CODES: Record<ErrorCode, number> = {
  InvalidRequest: EXIT.misuse,
  PayloadTooLarge: EXIT.misuse,
  Forbidden: EXIT.forbidden,
  Refused: EXIT.refused,
  NotFound: EXIT.refused,
  Conflict: EXIT.refused,
  AlreadyExists: EXIT.refused,
  PreconditionFailed: EXIT.refused,
  FenceRejected: EXIT.refused,
  LeaseHeld: EXIT.held,
  CommitInProgress: EXIT.held,
  LeaseLost: EXIT.lost,
  QueueFull: EXIT.noAnswer,
  Throttled: EXIT.noAnswer,
  Unavailable: EXIT.noAnswer,
  OutcomeUnknown: EXIT.noAnswer,
  Unreachable: EXIT.noAnswer,
};

/** The exit code of a failed verb. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Failure) return error.exitCode;
  if (!isHoldfastError(error)) return EXIT.refused;
  const isForbidden = error.code === 'Refused' && (error.status === 401 || error.status === 403);
  // A newer service may have codes that this command does not know.
  return isForbidden ? EXIT.forbidden : (EXIT_CODES[error.code] ?? EXIT.refused);
}

/** A line for people, without a full stop. */
export function messageOf(error: unknown, endpoint?: string): string {
  if (!isHoldfastError(error)) return error instanceof Error ? error.message : String(error);
  if (isHoldfastError(error, 'InvalidRequest'))
    return error.issues.map(({ path, message }) => `${path}: ${message}`).join('\n');
  const at = endpoint && error.cause instanceof Error ? ` (${endpoint})` : '';
  const trace = error.traceId ? `, trace ${error.traceId}` : '';
  return `${error.message}${causeOf(error)}${at} [${error.code}${trace}]`;
}

/** `the connection failed` alone helps nobody. */
function causeOf({ cause }: HoldfastError): string {
  if (!(cause instanceof Error)) return '';
  const inner = cause.cause instanceof Error ? cause.cause : cause;
  return `: ${inner.message || (inner as NodeJS.ErrnoException).code}`;
}
