/** Tells the operator why a command cannot go on. Nothing was changed, unless the message says so. */
export class Refusal extends Error {}

/** The exit code of a command if the operator answers no. */
export const DECLINED = 1;

/** @returns what the command returns, or 0. After an error: 64 if the command was refused, 1 if AWS failed */
export async function exitCodeOf(command: () => Promise<number | undefined>): Promise<number> {
  try {
    return (await command()) ?? 0;
  } catch (error) {
    const isRefusal = error instanceof Refusal || (error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS');
    console.error((error as Error).message);
    return isRefusal ? 64 : 1;
  }
}

/** The value of an option that may be given once. @throws Refusal if it is given twice, or empty, as with an unset variable of the shell */
export function only(option: string, values: string[]): string | undefined {
  if (values.length > 1) throw new Refusal(`--${option} is given twice`);
  if (values[0] === '') throw new Refusal(`--${option} is empty`);
  return values[0];
}
