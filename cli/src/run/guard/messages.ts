import type { Readable } from 'node:stream';

/** A message of the supervisor to the guard, as one line of JSON. */
export type ToGuard =
  /** The guard ends the group at this time of the shared clock. */
  | ['until', number]
  /** The guard starts the command, with these words and this environment. */
  | ['run', string[], NodeJS.ProcessEnv]
  /** The guard exits, because it is the last process of the group. */
  | ['end'];

/** A message of the guard to the supervisor. */
export type FromGuard =
  | ['started', group: number, guard: number]
  /** The command could not be started. */
  | ['failed', code: string]
  | ['exited', code: number | null, signal: NodeJS.Signals | null];

/** Calls `receive` for each message of a stream. */
export function readMessages<Message>(stream: Readable, receive: (message: Message) => void): void {
  let rest = '';
  stream.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) receive(JSON.parse(line));
  });
}

/** The line of a message. */
export const lineOf = (message: ToGuard | FromGuard): string => `${JSON.stringify(message)}\n`;
