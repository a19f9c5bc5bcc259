import type { Emit } from '../../clients/typescript/src/events.ts';
import type { Arguments } from './arguments.ts';
import type { Output } from './output.ts';
import type { Service } from './service.ts';
import type { Settings } from './settings.ts';
import type { Syntax } from './syntax.ts';

/** A verb of `holdfast`, from which its help and completion are made. */
export interface Verb extends Syntax {
  /** A phrase without a full stop, for the help. */
  summary: string;
  /** More text for the help. */
  notes?: string;
  /** A command line as a user types it. A test runs it. */
  example: string;
  /** @returns the exit code */
  run(call: Call): Promise<number>;
}

/** One call of a verb. */
export interface Call {
  arguments: Arguments;
  output: Output;
  /** @throws NoEndpoint; Failure if the configuration is wrong */
  settings(): Settings;
  /** Makes the service for the settings of this call. */
  connect(options?: ConnectOptions): Service;
}

/** The client options that a verb sets. */
export interface ConnectOptions {
  onEvent?: Emit | undefined;
  /** Called with the reason why a call is tried again, only once until an answer comes. */
  onRetry?: ((why: string) => void) | undefined;
  /** How long to retry a call, unless the call says so itself, in milliseconds. */
  timeoutMs?: number | undefined;
  fetch?: typeof fetch | undefined;
}
