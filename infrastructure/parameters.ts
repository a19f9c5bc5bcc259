import { CALLERS, DEPLOYMENT } from './parameters/deployment.ts';
import { FUNCTIONS } from './parameters/functions.ts';
import type { Group, Parameter, ParameterName } from './parameters/kinds.ts';
import { PLATFORM, releasedOnly } from './parameters/platform.ts';
import { COMMITS, EXPIRED_RECORDS, LEASES, NAMESERVICE } from './parameters/service.ts';
import { STORAGE } from './parameters/storage.ts';

/** By the heading under which CloudFormation's console shows them. */
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

/** As serverless.yml includes them: the values of a deployment that sets nothing. What is empty, its places make up. */
export const defaults = (): Record<ParameterName, string | number> =>
  Object.fromEntries(
    Object.entries(PARAMETERS).flatMap(([name, { default: value, releasedOnly }]) =>
      !value || releasedOnly ? [] : [[name, NUMBERS.has(name) ? Number(value) : value]],
    ),
  );

/** What the framework wants as numbers. */
const NUMBERS = new Set(['memoryMb', 'logRetentionDays']);
