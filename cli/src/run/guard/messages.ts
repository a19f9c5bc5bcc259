import type { Readable } from 'node:stream';

/** What the supervisor tells the guard, as JSON on a line each. */
export type ToGuard =
  /** The group must have ended by then, on the shared clock. */
  | ['until', number]
  /** Starts the command, as words and with its environment. */
  | ['run', string[], NodeJS.ProcessEnv]
  /** Nothing but the guard is left of the group. */
  | ['end'];

/** What the guard tells the supervisor. */
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

export const lineOf = (message: ToGuard | FromGuard): string => `${JSON.stringify(message)}\n`;
