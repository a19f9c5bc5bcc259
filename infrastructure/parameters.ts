import { CALLERS, DEPLOYMENT } from './parameters/deployment.ts';
import { FUNCTIONS } from './parameters/functions.ts';
import type { Group, Parameter, ParameterName } from './parameters/kinds.ts';
import { PLATFORM, releasedOnly } from './parameters/platform.ts';
import { COMMITS, EXPIRED_RECORDS, LEASES, NAMESERVICE } from './parameters/service.ts';
import { STORAGE } from './parameters/storage.ts';

/** The parameters, under the headings that CloudFormation's console shows. */
export const GROUPS: Record<string, Group> = {
  Deployment: DEPLOYMENT,
  Callers: CALLERS,
  'Tables and bucket': STORAGE,
  Leases: LEASES,
  Commits: COMMITS,
  Nameservice: NAMESERVICE,
  'Expired records': EXPIRED_RECORDS,
  Functions: FUNCTIONS,
  Platform: releasedOnly(PLATFORM),
};

export const PARAMETERS: Record<ParameterName, Parameter> = Object.assign({}, ...Object.values(GROUPS));

/** The defaults, which serverless.yml includes. Empty ones are left out, because serverless.yml then makes up its own value. */
export const defaults = (): Record<ParameterName, string | number> =>
  Object.fromEntries(
    Object.entries(PARAMETERS).flatMap(([name, { default: value, releasedOnly }]) =>
      !value || releasedOnly ? [] : [[name, NUMBERS.has(name) ? Number(value) : value]],
    ),
  );

/** The parameters that the framework wants as numbers. */
const NUMBERS = new Set(['memoryMb', 'logRetentionDays']);
