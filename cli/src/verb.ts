import type { Emit } from '../../clients/typescript/src/events.ts';
import type { Arguments } from './arguments.ts';
import type { Output } from './output.ts';
import type { Service } from './service.ts';
import type { Settings } from './settings.ts';
import type { Syntax } from './syntax.ts';

/** A subcommand of `holdfast`. Help and completion are generated from it. */
export interface Verb extends Syntax {
  /** A summary: a phrase without a full stop. */
  summary: string;
  /** Further text for the help. */
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
  /** The service, for the settings of this call. */
  connect(options?: ConnectOptions): Service;
}

/** The client options that a verb sets. */
export interface ConnectOptions {
  onEvent?: Emit | undefined;
  /** Called once, if no answer comes, with the reason why a call is tried again. */
  onRetry?: ((why: string) => void) | undefined;
  /** How long to retry calls that do not say it, in milliseconds. */
  timeoutMs?: number | undefined;
  fetch?: typeof fetch | undefined;
}
