import commits from './examples/commits.json' with { type: 'json' };
import expired from './examples/expired.json' with { type: 'json' };
import leases from './examples/leases.json' with { type: 'json' };
import nameservice from './examples/nameservice.json' with { type: 'json' };
import once from './examples/once.json' with { type: 'json' };
import operators from './examples/operators.json' with { type: 'json' };
import other from './examples/other.json' with { type: 'json' };
import permits from './examples/permits.json' with { type: 'json' };
import rates from './examples/rates.json' with { type: 'json' };
import type { Step } from './examples/replay.ts';
import type { Example } from './routes/route.ts';

/** Each scenario is sent to a new deployment, call after call, and its answers are recorded. */
export const SCENARIOS = {
  leases,
  permits,
  commits,
  nameservice,
  expired,
  once,
  rates,
  operators,
  other,
} as unknown as Record<string, Step[]>;

/** The examples of a function for the document. */
export const examplesOf = (functionName: string): Example[] =>
  Object.values(SCENARIOS)
    .flat()
    .filter((step): step is Step & Example => step.function === functionName && step.name !== undefined);
