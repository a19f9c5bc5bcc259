import { type ParseArgsConfig, parseArgs } from 'node:util';

interface Bounds {
  least: number;
  most?: number;
  whole?: boolean;
}

/**
 * The options of a command.
 * @throws Error with a line for people that names the option: an unknown one, or one without its value
 */
export function readOptions<const Given extends NonNullable<ParseArgsConfig['options']>>(
  options: Given,
  args: string[] = process.argv.slice(2),
) {
  const { values } = parsed(options, args);
  return {
    values,
    /** Undefined if it was not given. @throws Error that names the option, if its value is not such a number */
    number(option: keyof typeof values & string, { least, most, whole = false }: Bounds): number | undefined {
      const text = values[option];
      if (text === undefined) return undefined;
      const value = /^\d+(\.\d+)?$/.test(String(text)) ? Number(text) : Number.NaN;
      if (value >= least && value <= (most ?? value) && (!whole || Number.isSafeInteger(value))) return value;
      const range = most === undefined ? `of at least ${least}` : `from ${least} to ${most}`;
      throw new Error(`--${option} must be a ${whole ? 'whole ' : ''}number ${range}, not '${text}'`);
    },
  };
}

function parsed<const Given extends NonNullable<ParseArgsConfig['options']>>(options: Given, args: string[]) {
  try {
    return parseArgs({ options, args });
  } catch (error) {
    throw new Error((error as Error).message.split('\n', 1)[0]); // the rest of Node's message explains how options could be written
  }
}
