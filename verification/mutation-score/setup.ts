import { globSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** Of Stryker's runner. */
    mode: 'dry-run' | 'mutant';
    activeMutant: string | undefined;
    /** Whether a mutant is there while modules load. Stryker says so only where it is not told which tests to run. */
    loadsMutants: boolean;
  }
}

/** What Stryker's instrumentation reads. */
const stryker = Reflect.get(globalThis, '__stryker__') as { activeMutant?: string | undefined };

/** The worker outlives the run: what a file does while it loads must not meet the mutant of the run before. */
const forget = () => {
  stryker.activeMutant = undefined;
};
forget();
if (inject('loadsMutants') && inject('mode') === 'mutant') stryker.activeMutant = inject('activeMutant');
afterAll(forget);

/**
 * What is evaluated while a module loads belongs to no test. Stryker must see that, because such a mutant needs a worker of its own:
 * so everything is loaded before the first test. Asking for it again at each run would take longer than most tests.
 */
if (!Reflect.has(globalThis, 'holdfastIsLoaded'))
  for (const file of globSync('shared/{aws,commits,leases,nameservice}/**/*.ts')) await import(resolve(file));
Reflect.set(globalThis, 'holdfastIsLoaded', true);
