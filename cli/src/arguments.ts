import { parseArgs } from 'node:util';
import { closestMatch } from 'leven';
import { misuse } from './failure.ts';
import type { Options, Syntax } from './syntax.ts';

/** The options of every verb that calls the service. */
const CALL_OPTIONS: Options = {
  endpoint: { value: 'URL', help: 'the URL of the API (HOLDFAST_ENDPOINT)' },
  profile: { value: 'NAME', help: 'a profile of the configuration file (HOLDFAST_PROFILE)' },
  namespace: { value: 'NAME', help: 'the namespace to use (HOLDFAST_NAMESPACE)' },
  region: { value: 'REGION', help: 'the AWS region of an API with a custom domain (AWS_REGION)' },
};

/** The options of verbs that try a call again if no answer comes. */
const RETRY_OPTIONS: Options = {
  timeout: { value: 'DURATION', help: 'how long to retry if no answer comes, on top of any wait (30s)' },
};

/** The options of verbs that print a result. */
const RESULT_OPTIONS: Options = { json: { help: 'print JSON, one object a line' } };

/** The options of every verb. */
const COMMON_OPTIONS: Options = {
  quiet: { help: 'print only results and errors', short: 'q' },
  help: { help: 'show this help', short: 'h' },
};

export const optionsOf = (verb: Syntax): Options => ({
  ...verb.options,
  ...(!verb.isLocal && CALL_OPTIONS),
  ...(!verb.isLocal && !verb.noTimeout && RETRY_OPTIONS),
  ...(!verb.isLocal && !verb.takesCommand && RESULT_OPTIONS),
  ...COMMON_OPTIONS,
});

interface Bounds {
  min: number;
  max?: number;
  whole?: boolean;
}

/** The units of a duration in seconds. A number without a unit is in seconds. */
const UNITS: Record<string, number> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** Examples of durations, for messages. */
const DURATIONS = '90, 60s, 15m or 1h';

/** The command line of one verb, as it was typed. */
export class Arguments {
  readonly words: string[];
  /** The words after `--`. */
  readonly command: string[];
  readonly #values: Record<string, string | boolean | (string | boolean)[] | undefined>;

  /** @throws Failure that names the wrong option or word */
  constructor(verb: Syntax, args: string[]) {
    const options = optionsOf(verb);
    const separator = args.indexOf('--');
    const verbArgs = separator < 0 ? args : args.slice(0, separator);
    this.command = separator < 0 ? [] : args.slice(separator + 1);
    const parsed = parse(options, verbArgs);
    this.words = parsed.positionals;
    this.#values = parsed.values;
    if (this.is('help')) return;
    for (const [name, { choices }] of Object.entries(options))
      for (const value of this.all(name))
        if (choices && !choices.includes(value))
          throw misuse(`--${name} must be one of ${choices.join(', ')}, not '${value}'`);
    const [min, max] = verb.words;
    if (!verb.takesCommand && separator >= 0) {
      this.words.push(...this.command); // words after -- may begin with a dash
      this.command = [];
    }
    if (this.words.length < min) throw misuse(`${verb.usage} is missing`);
    const extra = this.words[max];
    if (extra !== undefined)
      throw misuse(
        verb.takesCommand
          ? `put -- before the command: -- ${this.words.slice(max).join(' ')}`
          : `there is one word too many: '${extra}'`,
      );
    if (verb.takesCommand && this.command.length === 0) throw misuse('there is no command after --');
  }

  /** The word at an index, or an empty string. */
  word(at: number): string {
    return this.words[at] ?? '';
  }

  is(option: string): boolean {
    return this.#values[option] === true;
  }

  text(option: string): string | undefined {
    return this.all(option).at(-1);
  }

  all(option: string): string[] {
    const value = this.#values[option];
    return (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string');
  }

  /** A number within bounds. @throws Failure that names the option, if its value is not such a number */
  number(option: string, { min, max, whole = false }: Bounds): number | undefined {
    const text = this.text(option);
    if (text === undefined) return undefined;
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= (max ?? value) && (!whole || Number.isSafeInteger(value))) return value;
    const range = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`;
    throw misuse(`--${option} must be a ${whole ? 'whole ' : ''}number ${range}, not '${text}'`);
  }

  /**
   * A duration such as `90`, `60s`, `15m`, `1h` or `2d`, in seconds.
   * The bounds are in seconds; `or` is a word that the option allows too, for the message.
   * @throws Failure that names the option, if its value is not such a duration
   */
  seconds(option: string, { min, max, whole = false, or }: Bounds & { or?: string }): number | undefined {
    const text = this.text(option);
    if (text === undefined) return undefined;
    const [, number, unit = ''] = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(text) ?? [];
    const value = Number(number) * (UNITS[unit] ?? 1);
    if (value >= min && value <= (max ?? value) && (!whole || Number.isSafeInteger(value))) return value;
    const range = max === undefined ? `of at least ${min} seconds` : `from ${min} to ${max} seconds`;
    throw misuse(
      `--${option} must be a duration ${range}, such as ${DURATIONS}${or ? `, or ${or}` : ''}, not '${text}'`,
    );
  }

  /** @throws Failure that names the option, if its value is not JSON */
  json(option: string): unknown {
    const text = this.text(option);
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text);
    } catch {
      throw misuse(`--${option} must be JSON, not '${text}'`);
    }
  }
}

function parse(options: Options, args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: Object.fromEntries(
        Object.entries(options).map(([name, { value, short, multiple }]) => [
          name,
          { type: value ? 'string' : 'boolean', multiple: multiple ?? false, ...(short && { short }) } as const,
        ]),
      ),
    });
  } catch (error) {
    // Node's messages are for people who write JavaScript.
    const { code, message } = error as NodeJS.ErrnoException;
    const [, option] = /'(?:-\w, )?(-[^\s']*)/.exec(message) ?? [];
    if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
      const names = Object.keys(options).map((name) => `--${name}`);
      throw misuse(`there is no option ${option}${suggestion(option, names)}`);
    }
    throw misuse(`${option} ${message.includes('not take') ? 'takes no value' : `needs a value: ${option}=VALUE`}`);
  }
}

/** How many letters may differ. Two, because two letters may have changed places. */
const MAX_DISTANCE = 2;

/** The end of a message about a mistyped word: the name that was probably meant. Empty if no name is similar. */
export function suggestion(word = '', names: readonly string[]): string {
  const letters = word.replace(/^-+/, '').length;
  const meant = closestMatch(word, [...names], { maxDistance: Math.min(MAX_DISTANCE, letters - 1) });
  return meant === undefined ? '' : `: did you mean ${meant}?`;
}
