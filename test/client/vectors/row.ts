/** A part of a JSON document. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Fields = Record<string, Json>;

/**
 * What the proxy does with one request: the name of an answer, or an answer with other fields, later. `lost` never answers, `cut` closes the connection.
 * Over the real service, `pass` passes the request on; the answer of a request that was passed on may be `lost`, `cut`, or replaced by an answer with a name.
 */
export type Reply = string | { answer: string; with?: Fields; afterMs?: number };

/** What happens at a moment: a caller, its work, another caller or an operator does something, or a clock moves. */
export type Step = Fields & {
  /** Milliseconds of true time since the call began. */
  at?: number;
  do: string;
};

/** The outcome of the call. */
export interface Outcome {
  at?: number;
  returns?: Json;
  /** Fields of the error. `message` lists what its text contains, whatever the case of the letters. */
  error?: Fields;
  cancelled?: true;
}

/** One test vector, as `contract/vectors.json` has it. */
export interface Row {
  name: string;
  call: 'lease' | 'once' | 'rate';
  key?: string;
  options?: Fields;
  client?: { namespace?: string; token?: string; endpoint?: string };
  random?: number;
  service?: Record<string, Reply | Reply[]>;
  steps?: Step[];
  outcome: Outcome;
  /** The requests in order: milliseconds since the call began, the operation, and fields. Null: an absent field. `$1`: one text in several places. */
  requests?: [at: number, operation: string, fields?: Fields][];
  /** The events in order: the type of each, or some of its fields. */
  events?: (string | Fields)[];
  /** For a row over the real service: how it describes the key at the end. */
  state?: Fields;
}

export interface Vectors {
  answers: Record<string, { status: number; body: Json }>;
  usual: Record<string, string>;
  rows: Row[];
}

/** The verbs of the work, which waits for them. Work that has none returns at once. */
const OF_WORK = ['show', 'check', 'settle', 'release', 'return', 'fail'];

export const waitsForSteps = ({ steps = [] }: Row): boolean => steps.some((step) => OF_WORK.includes(step.do));
export const isOfWork = (step: Step): boolean => OF_WORK.includes(step.do);

/** The clients round to milliseconds in different ways, so times may differ by this much. */
const ROUNDED_MS = 3;
const TIMES = /^(at|.*Ms)$/;

/**
 * Compares what was seen with what a row expects, which may have fewer fields.
 * @param names what each `$1` stands for
 * @returns what differs; undefined if nothing does
 */
export function difference(
  seen: Json | undefined,
  expected: Json,
  names: Map<string, Json> = new Map(),
  path = '',
): string | undefined {
  if (expected === null)
    return seen === undefined || seen === null ? undefined : `${path} is ${text(seen)}, not absent`;
  if (typeof expected === 'string' && expected.startsWith('$')) return bound(seen, expected, names, path);
  if (Array.isArray(expected)) {
    if (!Array.isArray(seen) || seen.length !== expected.length)
      return `${path} is ${text(seen)}, not ${text(expected)}`;
    return first(expected.map((one, at) => () => difference(seen[at], one, names, `${path}[${at}]`)));
  }
  if (typeof expected === 'object') {
    if (seen === null || typeof seen !== 'object' || Array.isArray(seen))
      return `${path} is ${text(seen)}, not an object`;
    return first(
      Object.entries(expected).map(
        ([name, one]) =>
          () =>
            name === 'message' && Array.isArray(one)
              ? missing(String(seen.message), one as string[])
              : difference(seen[name], one, names, `${path}.${name}`),
      ),
    );
  }
  const name = path.split('.').at(-1) ?? '';
  if (TIMES.test(name) && typeof expected === 'number' && Math.abs(Number(seen) - expected) <= ROUNDED_MS)
    return undefined;
  return seen === expected ? undefined : `${path} is ${text(seen)}, not ${text(expected)}`;
}

function bound(seen: Json | undefined, name: string, names: Map<string, Json>, path: string): string | undefined {
  if (seen === undefined || seen === null) return `${path} is absent`;
  const known = names.get(name);
  if (known !== undefined) return known === seen ? undefined : `${path} is not the ${name} of before`;
  const other = [...names].find(([, value]) => value === seen);
  if (other) return `${path} is ${other[0]}, not ${name}`;
  names.set(name, seen);
  return undefined;
}

const missing = (message: string, parts: string[]): string | undefined => {
  const absent = parts.find((part) => !message.toLowerCase().includes(part.toLowerCase()));
  return absent === undefined ? undefined : `the message lacks '${absent}': ${message}`;
};

const first = (comparisons: (() => string | undefined)[]): string | undefined => {
  for (const compare of comparisons) {
    const found = compare();
    if (found !== undefined) return found;
  }
  return undefined;
};

const text = (value: Json | undefined): string => JSON.stringify(value) ?? 'absent';
