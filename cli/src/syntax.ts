export interface Option {
  /** The placeholder of the value in the help. An option without a value is a switch. */
  value?: string;
  help: string;
  short?: string;
  /** The allowed values. */
  choices?: readonly string[];
  /** True if the option may be repeated. */
  multiple?: true;
  /** True if the value is `KEY=LIMIT`. The completion then asks the service. */
  takesLimit?: true;
}

export type Options = Record<string, Option>;

/** The options and words of a verb. */
export interface Syntax {
  /** The words after the verb, for example `KEY -- COMMAND ...`. */
  usage: string;
  /** How many words the verb takes. */
  words: readonly [min: number, max: number];
  /** The kind of the key, if the first word is a key or the beginning of one. The completion then asks the service. True for leases and permits. */
  takesKey?: true | 'once' | 'rate';
  /** True if a command follows `--`. */
  takesCommand?: true;
  /** True if the verb never calls the service, so that it has none of the options of a call. */
  isLocal?: true;
  /** True if the verb tries each call only once, or for as long as it runs, so that it has no `--timeout`. */
  noTimeout?: true;
  options: Options;
}
