/** Says to the operator why a command cannot go on. Nothing was changed unless the message says so. */
export class Refusal extends Error {}

/** The exit code of a command whose question was answered with no. */
export const DECLINED = 1;

/** @returns the exit code of a command: its own or 0, 64 if it was refused, 1 if AWS failed */
export async function exitCodeOf(command: () => Promise<number | undefined>): Promise<number> {
  try {
    return (await command()) ?? 0;
  } catch (error) {
    const isRefusal = error instanceof Refusal || (error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS');
    console.error((error as Error).message);
    return isRefusal ? 64 : 1;
  }
}

/** The value of an option that stands for one thing. @throws Refusal if it is given twice, or empty as by a variable that is not set */
export function only(option: string, values: string[]): string | undefined {
  if (values.length > 1) throw new Refusal(`--${option} is given twice`);
  if (values[0] === '') throw new Refusal(`--${option} is empty`);
  return values[0];
}
