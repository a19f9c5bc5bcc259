import { requiredString } from '../aws/variables.ts';

/** The environment variable with the value of each parameter that names a scope. */
const SCOPES = {
  adminScope: 'ADMIN_SCOPE',
  leasesScope: 'LEASES_SCOPE',
  commitsScope: 'COMMITS_SCOPE',
  namesScope: 'NAMES_SCOPE',
  expiredScope: 'EXPIRED_SCOPE',
  breakScope: 'BREAK_SCOPE',
  cleanScope: 'CLEAN_SCOPE',
  repairScope: 'REPAIR_SCOPE',
  resetFenceScope: 'RESET_FENCE_SCOPE',
};

/** The scopes of the deployment, by parameter. @throws Error naming the variable that is missing */
export function scopesFromEnvironment(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return Object.fromEntries(
    Object.entries(SCOPES).map(([parameter, variable]) => [parameter, requiredString(variable, env)]),
  );
}
