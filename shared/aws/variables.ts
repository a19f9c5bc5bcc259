/** @throws Error naming the variable; a function that lacks its settings must not start. */
export function requiredString(name: string, env: NodeJS.ProcessEnv): string {
  const value = env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

/** @throws Error naming the variable unless it holds a whole number of at least zero. */
export function wholeNumber(name: string, fallback: number, env: NodeJS.ProcessEnv): number {
  const value = env[name];
  if (value === undefined) return fallback;
  if (!/^\d{1,15}$/.test(value)) throw new Error(`${name} must be a whole number, not '${value}'`);
  return Number(value);
}
