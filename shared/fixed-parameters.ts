/**
 * The parameters of a deployment that an update must not change or drop by accident. The change check compares them.
 */
export interface CheckedParameters {
  /**
   * The fixed parameters. A change of one would move callers to other records, or lock them out. For a table or a
   * bucket, the value is the name that is in use, even if the parameter is empty.
   */
  values: Record<string, string>;
  /** Parameters that limit what callers and functions may do. */
  limits: Record<string, string>;
  defaults: Record<string, string>;
}

/** The name of the stack's output that lists the values and the limits, each as `name=value`. */
export const ACCEPTED_OUTPUT = 'FixedParameters';

export interface ParameterChange {
  name: string;
  from: string;
  to: string;
}

/**
 * @returns the changes that the operator must allow: each fixed parameter that differs, and each limit from whose list
 *   a name was removed. If a version does not have a parameter, its default counts.
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

/**
 * Whether a limit lost a name. An operator may set a limit for the first time, or add names to it, without
 * `allowChange`.
 */
function isLoss({ name, from, to }: ParameterChange, { defaults }: CheckedParameters): boolean {
  const names = to.split(',');
  return from !== (defaults[name] ?? '') && from.split(',').some((one) => one !== '' && !names.includes(one));
}

/** A change as `allowChange` names it. The parameter takes several changes, separated by spaces. */
export const allowanceOf = ({ name, to }: Pick<ParameterChange, 'name' | 'to'>): string => `${name}=${to}`;
