import type { Emit } from '../../client/src/events.ts';
import type { Arguments } from './arguments.ts';
import type { Output } from './output.ts';
import type { Service } from './service.ts';
import type { Settings } from './settings.ts';
import type { Syntax } from './syntax.ts';

/** One of the words that `holdfast` takes. Help and completion are made from it. */
export interface Verb extends Syntax {
  /** What it does: a phrase without a stop. */
  summary: string;
  /** What else to know, for the help. */
  notes?: string;
  /** A line as a user types it. A test runs it. */
  example: string;
  /** @returns the exit code */
  run(call: Call): Promise<number>;
}

/** One call of a verb. */
export interface Call {
  arguments: Arguments;
  output: Output;
  /** @throws Failure where no endpoint is known, or the configuration is wrong */
  settings(): Settings;
  /** The service, for the settings of this call. */
  connect(options?: ConnectOptions): Service;
}

/** What a verb wants of its client. */
export interface ConnectOptions {
  onEvent?: Emit | undefined;
  fetch?: typeof fetch | undefined;
}
