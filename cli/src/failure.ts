import { isTransient } from '../../clients/typescript/src/attempt.ts';
import { type ErrorCode, type HoldfastError, isHoldfastError } from '../../clients/typescript/src/errors.ts';
import { EXIT } from './exit-codes.ts';

/** An error of the user or the machine, with a line for people and an exit code. */
export class Failure extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The failure of a wrong command line or configuration. */
export const misuse = (message: string): Failure => new Failure(message, EXIT.misuse);

/** The reason why Node could not use a file, without the error code and the name of the system call. */
export const fileFault = ({ code, message }: NodeJS.ErrnoException): string =>
  code === 'EISDIR' ? 'it is a folder' : message.replace(/^E\w+: |, \w+( '.*')?$/gs, '');

/** The failure if neither the command line nor the configuration names the endpoint. */
export class NoEndpoint extends Failure {
  constructor() {
    super(
      'no endpoint: give --endpoint, set HOLDFAST_ENDPOINT, or write a profile (holdfast doctor --help)',
      EXIT.misuse,
    );
  }
}

/** The exit codes of errors that are neither transient (`noAnswer`) nor refusals (`refused`). */
const EXIT_CODES: Partial<Record<ErrorCode, number>> = {
  InvalidRequest: EXIT.misuse,
  PayloadTooLarge: EXIT.misuse,
  Forbidden: EXIT.forbidden,
  LeaseHeld: EXIT.held,
  CommitInProgress: EXIT.held,
  RateExceeded: EXIT.held,
  Superseded: EXIT.held,
  LeaseLost: EXIT.lost,
};

/** The exit code of a failed verb. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Failure) return error.exitCode;
  if (!isHoldfastError(error)) return EXIT.refused;
  const isForbidden = error.code === 'Refused' && (error.status === 401 || error.status === 403);
  // A newer service may send codes that this command does not know.
  return isForbidden ? EXIT.forbidden : (EXIT_CODES[error.code] ?? (isTransient(error) ? EXIT.noAnswer : EXIT.refused));
}

/** The error as a line for people, without a full stop, or a line for each wrong field. */
export function messageOf(error: unknown, endpoint?: string): string {
  if (!isHoldfastError(error)) return error instanceof Error ? error.message : String(error);
  if (isHoldfastError(error, 'InvalidRequest'))
    return error.issues.map(({ path, message }) => `${path}: ${message}`).join('\n');
  const trace = error.traceId ? `, trace ${error.traceId}` : '';
  return `${saidBy(error, endpoint)} [${error.code}${trace}]`;
}

function saidBy({ code, message, status }: HoldfastError, endpoint = ''): string {
  if (code !== 'Refused' && code !== 'Unreachable') return message;
  const answer = `${status ? `HTTP ${status}: ` : ''}${message}`
    // OpenSSL puts names and lines of its source around the reason.
    .replace(/(?:\w+ )*\w+:error:.*SSL routines:\w*:([^:]*).*/s, 'TLS: $1')
    // The text may be the page of a proxy, or of another service.
    .replace(/\s+/g, ' ')
    .trim();
  return answer.includes(endpoint) ? answer : `${answer} (${endpoint})`;
}
