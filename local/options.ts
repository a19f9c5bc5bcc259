import { type ParseArgsConfig, parseArgs } from 'node:util';

interface Bounds {
  min: number;
  max?: number;
  whole?: boolean;
}

/**
 * Reads the options of a command.
 * @throws Error with a line for people, which names the option that is unknown or lacks its value
 */
export function readOptions<const Given extends NonNullable<ParseArgsConfig['options']>>(
  options: Given,
  args: string[] = process.argv.slice(2),
) {
  const { values } = parsed(options, args);
  return {
    values,
    /** The number of an option. Undefined if the option is not given. @throws Error that names the option, if its value is not such a number */
    number(option: keyof typeof values & string, { min, max, whole = false }: Bounds): number | undefined {
      const text = values[option];
      if (text === undefined) return undefined;
      const value = /^\d+(\.\d+)?$/.test(String(text)) ? Number(text) : Number.NaN;
      if (value >= min && value <= (max ?? value) && (!whole || Number.isSafeInteger(value))) return value;
      const range = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`;
      throw new Error(`--${option} must be a ${whole ? 'whole ' : ''}number ${range}, not '${text}'`);
    },
  };
}

function parsed<const Given extends NonNullable<ParseArgsConfig['options']>>(options: Given, args: string[]) {
  try {
    return parseArgs({ options, args });
  } catch (error) {
    throw new Error((error as Error).message.split('\n', 1)[0]); // the other lines of Node's message explain how to write options
  }
}
