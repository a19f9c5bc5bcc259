export interface Option {
  /** What stands for the value in the help; an option without it is a switch. */
  value?: string;
  help: string;
  short?: string;
  /** The values that it takes. */
  choices?: readonly string[];
  /** Whether it may be given more than once. */
  multiple?: true;
}

export type Options = Record<string, Option>;

/** What a verb takes. */
export interface Syntax {
  /** What stands behind it, for example `KEY -- COMMAND ...`. */
  usage: string;
  /** How many words it takes at least, and at most. */
  words: readonly [least: number, most: number];
  /** Whether a command stands behind `--`. */
  takesCommand?: true;
  /** Whether it never calls the service, and so takes none of the options of a call. */
  isLocal?: true;
  options: Options;
}
