import { createInterface } from 'node:readline/promises';
import { Refusal } from './failure.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * An interruption at the question, by Ctrl-C, Ctrl-D or a signal, is a no: the command can still take back what it has prepared. A second signal ends the
 * process at once.
 * @returns whether the operator at the terminal says yes
 */
export async function ask(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const interruption = new AbortController();
  const interrupt = () => interruption.abort();
  for (const signal of SIGNALS) process.once(signal, interrupt);
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

/** @param more what else the operator may add @throws Refusal if there is a question to ask, and no terminal to ask at */
export function mustAsk(yes: boolean, more = ''): void {
  if (!yes && !process.stdin.isTTY)
    throw new Refusal(`there is no terminal to ask at: add --yes${more}. Nothing was changed`);
}
