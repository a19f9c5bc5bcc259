/**
 * @throws Error naming the variable if it is not set or empty, so that a function does not start without its settings
 */
export function requiredString(name: string, env: NodeJS.ProcessEnv): string {
  const value = env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

/** @throws Error naming the variable unless it is a whole number of at least zero */
export function wholeNumber(name: string, fallback: number, env: NodeJS.ProcessEnv): number {
  const value = env[name];
  if (value === undefined) return fallback;
  if (!/^\d{1,15}$/.test(value)) throw new Error(`${name} must be a whole number, not '${value}'`);
  return Number(value);
}
