/** What the change check compares: parameters of a deployment that an update must not change or drop by accident. */
export interface CheckedParameters {
  /**
   * The fixed parameters: a change would move callers to other records, or shut them out. For a table or a bucket, the value is the name that is
   * in use, even if the parameter is empty.
   */
  values: Record<string, string>;
  /** Parameters that limit what callers and functions may do. */
  limits: Record<string, string>;
  /** The value that each parameter has if none is given. */
  defaults: Record<string, string>;
}

/** The output of the stack that lists the values and the limits in the form of `allowChange`. */
export const ACCEPTED_OUTPUT = 'FixedParameters';

/** A fixed parameter or a limit that gets a new value. */
export interface ParameterChange {
  name: string;
  from: string;
  to: string;
}

/**
 * @returns the changes that the operator must allow: every fixed parameter that differs, and every limit that loses a name which was set. A version
 * without a parameter counts as if the parameter had its default.
 */
export function changesToAllow(before: CheckedParameters, after: CheckedParameters): ParameterChange[] {
  return [
    ...changesOf('values', before, after),
    ...changesOf('limits', before, after).filter((change) => isLoss(change, before)),
  ];
}

function changesOf(kind: 'values' | 'limits', before: CheckedParameters, after: CheckedParameters): ParameterChange[] {
  const [former = {}, latter = {}] = [before[kind], after[kind]];
  return [...new Set([...Object.keys(former), ...Object.keys(latter)])]
    .map((name) => ({
      name,
      from: former[name] ?? after.defaults[name] ?? '',
      to: latter[name] ?? before.defaults[name] ?? '',
    }))
    .filter(({ from, to }) => from !== to);
}

/** Setting a limit for the first time and adding to its list take nothing away, so they need no permission. */
function isLoss({ name, from, to }: ParameterChange, { defaults }: CheckedParameters): boolean {
  const names = to.split(',');
  return from !== (defaults[name] ?? '') && from.split(',').some((one) => one !== '' && !names.includes(one));
}

/** The form in which the parameter `allowChange` names a change. It takes several, separated by spaces. */
export const allowanceOf = ({ name, to }: Pick<ParameterChange, 'name' | 'to'>): string => `${name}=${to}`;
