import { createInterface } from 'node:readline/promises';
import { Refusal } from './failure.ts';

/** @returns whether the operator at the terminal says yes */
export async function ask(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question(`${question} [y/N] `);
  terminal.close();
  return /^y(es)?$/i.test(answer);
}

/** @param more what else the operator may add @throws Refusal if there is a question to ask, and no terminal to ask at */
export function mustAsk(yes: boolean, more = ''): void {
  if (!yes && !process.stdin.isTTY)
    throw new Refusal(`there is no terminal to ask at: add --yes${more}. Nothing was changed`);
}
