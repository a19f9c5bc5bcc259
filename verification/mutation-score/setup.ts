import { randomInt } from 'node:crypto';
import { globSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, inject, vi } from 'vitest';
import { beginFile } from '../../test/support/chance/seed.ts';
import { CAPABILITIES } from './report.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Values from Stryker's runner. */
    mode: 'dry-run' | 'mutant';
    activeMutant: string | undefined;
    /** Whether the mutant is there while files of tests load. */
    isEarly: boolean;
    /** Whether the mutant is evaluated while modules load, so that they must be loaded again. */
    reloads: boolean;
  }
  interface TaskMeta {
    /** The mutants that are run while modules load. */
    loaded?: string[];
    /** The mutants that this file runs outside of its tests. */
    early?: string[];
  }
}

/** What Stryker's instrumentation reads and writes. */
interface Stryker {
  activeMutant?: string | undefined;
  mutantCoverage?: { static: Record<string, number> };
}

/** Values that stay from run to run, because the worker outlives a run. */
interface Kept {
  /** The mutants that are run while modules load. Undefined before that. */
  loaded?: string[];
  /** The mutant that was there when the modules were loaded. */
  mutant?: string | undefined;
}

const stryker = Reflect.get(globalThis, '__stryker__') as Stryker;
const global = globalThis as { mutationScore?: Kept };
global.mutationScore ??= {};
const kept = global.mutationScore;

/** A file that loads must not meet the mutant of the run before. */
const forget = () => {
  stryker.activeMutant = undefined;
};
forget();
const isMutant = inject('mode') === 'mutant';
if (isMutant && inject('isEarly')) stryker.activeMutant = inject('activeMutant');
afterAll(forget);

beginFile(randomInt(2 ** 31));

const mutant = isMutant && inject('reloads') ? inject('activeMutant') : undefined;
if (kept.mutant !== mutant) vi.resetModules();
kept.mutant = mutant;

/** How often each mutant was run outside of tests. */
const counts = () => ({ ...stryker.mutantCoverage?.static });

/**
 * Code that runs while a module loads belongs to no test and runs only once. So all modules are loaded before the first test.
 * Asking for it again at each run would take longer than most tests.
 */
const LOADED = [
  `shared/{${CAPABILITIES.join(',')}}/**/*.ts`,
  'test/support/worlds/{commits,expiry,leases,line,nameservice,once,permits,permits-in-line,rates}.ts',
];
if (!kept.loaded) {
  for (const file of LOADED.flatMap((pattern) => globSync(pattern))) await import(resolve(file));
  kept.loaded = Object.keys(counts());
}

if (!isMutant) {
  const before = counts();
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the pattern.
  afterAll(({}, { meta }) => {
    const after = Object.entries(counts());
    meta.early = after.filter(([mutant, count]) => count > (before[mutant] ?? 0)).map(([mutant]) => mutant);
    if (kept.loaded) meta.loaded = kept.loaded;
  });
}
