/** The parameters of a deployment that an update must not change, or lose, in silence. */
export interface Guarded {
  /**
   * The values in force of parameters whose change would move callers to other records, or shut callers out. The value of a table or a bucket is
   * its name, even if the parameter is empty.
   */
  values: Record<string, string>;
  /** The values of parameters that limit what callers and functions may do. */
  limits: Record<string, string>;
  /** The values that the parameters have if no value is given. */
  defaults: Record<string, string>;
}

/** The output of the stack that has the values and the limits, as `allowChange` writes them. */
export const ACCEPTED_OUTPUT = 'GuardedParameters';

/** A guarded parameter with a new value. */
export interface GuardedChange {
  name: string;
  from: string;
  to: string;
}

/**
 * @returns the parameters that differ, and the limits that lose a name which was set. A version that lacks a parameter works as with the default
 * of the parameter.
 */
export function guardedChanges(before: Guarded, after: Guarded): GuardedChange[] {
  return [
    ...changesOf('values', before, after),
    ...changesOf('limits', before, after).filter((change) => isLoss(change, before)),
  ];
}

function changesOf(kind: 'values' | 'limits', before: Guarded, after: Guarded): GuardedChange[] {
  const [former = {}, latter = {}] = [before[kind], after[kind]];
  return [...new Set([...Object.keys(former), ...Object.keys(latter)])]
    .map((name) => ({
      name,
      from: former[name] ?? after.defaults[name] ?? '',
      to: latter[name] ?? before.defaults[name] ?? '',
    }))
    .filter(({ from, to }) => from !== to);
}

/** What was never set may be set, and a list may grow. */
function isLoss({ name, from, to }: GuardedChange, { defaults }: Guarded): boolean {
  const names = to.split(',');
  return from !== (defaults[name] ?? '') && from.split(',').some((one) => one !== '' && !names.includes(one));
}

/** How the parameter `allowChange` of the template names an allowed change, in a list with spaces between the changes. */
export const allowanceOf = ({ name, to }: Pick<GuardedChange, 'name' | 'to'>): string => `${name}=${to}`;
