import { createInterface } from 'node:readline/promises';
import { Refusal } from './failure.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Asks the operator at the terminal. Ctrl-C, Ctrl-D and a signal count as no, so the command can still delete what it has prepared. A
 * second signal ends the process at once.
 * @returns true if the operator answers yes
 */
export async function ask(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const interruption = new AbortController();
  const interrupt = () => interruption.abort();
  for (const signal of SIGNALS) process.once(signal, interrupt);
  // This handler stays: when a terminal closes, it sends SIGHUP, and its shell sends another one when it ends.
  process.on('SIGHUP', interrupt);
  // Node 20.3 leaves the question pending if the terminal is closed. If the terminal is gone, each write fails, and the command must go on.
  terminal.once('close', interrupt).on('error', interrupt);
  for (const stream of [process.stdout, process.stderr]) stream.on('error', interrupt);
  try {
    return /^y(es)?$/i.test(await terminal.question(`${question} [y/N] `, { signal: interruption.signal }));
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error;
    console.log();
    return false;
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
    terminal.close();
  }
}

/** @param more further options for the advice @throws Refusal if the command has to ask, but there is no terminal */
export function assertCanAsk(yes: boolean, more = ''): void {
  if (!yes && !process.stdin.isTTY)
    throw new Refusal(`there is no terminal to ask at: add --yes${more}. Nothing was changed`);
}
