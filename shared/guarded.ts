/** The parameters of a deployment whose change would move callers to other records, or shut callers out. */
export interface Guarded {
  /** The values in force, by parameter. The value of a table or a bucket is its name, even if the parameter is empty. */
  values: Record<string, string>;
  /** The values that the parameters have if no value is given. */
  defaults: Record<string, string>;
}

/** A guarded parameter with a new value. */
export interface GuardedChange {
  name: string;
  from: string;
  to: string;
}

/** @returns the parameters that differ. A version that lacks a parameter works as with the default of the parameter. */
export function guardedChanges(before: Guarded, after: Guarded): GuardedChange[] {
  const names = [...new Set([...Object.keys(before.values), ...Object.keys(after.values)])];
  return names
    .map((name) => ({ name, from: valueIn(name, before, after), to: valueIn(name, after, before) }))
    .filter(({ from, to }) => from !== to);
}

const valueIn = (name: string, { values }: Guarded, other: Guarded): string =>
  values[name] ?? other.defaults[name] ?? '';

/** How the parameter `allowChange` of the template names an allowed change, in a list with spaces between the changes. */
export const allowanceOf = ({ name, to }: Pick<GuardedChange, 'name' | 'to'>): string => `${name}=${to}`;
