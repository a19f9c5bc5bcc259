export interface Option {
  /** The placeholder of the value in the help. An option without it is a switch. */
  value?: string;
  help: string;
  short?: string;
  /** The allowed values. */
  choices?: readonly string[];
  /** Whether it may be given more than once. */
  multiple?: true;
  /** True if the value is `KEY=LIMIT`. The completion then asks the service. */
  takesLimit?: true;
}

export type Options = Record<string, Option>;

/** The options and words of a verb. */
export interface Syntax {
  /** The words after the verb, for example `KEY -- COMMAND ...`. */
  usage: string;
  /** How many words it takes at least, and at most. */
  words: readonly [least: number, most: number];
  /** Whether the first word is a key, or the beginning of keys, and of which kind. The completion then asks the service. */
  takesKey?: true | 'once' | 'rate';
  /** Whether a command follows `--`. */
  takesCommand?: true;
  /** Whether it never calls the service, and therefore has none of the options of a call. */
  isLocal?: true;
  /** Whether it tries each call once, or as long as it runs, so that no `--timeout` could change that. */
  noTimeout?: true;
  options: Options;
}
