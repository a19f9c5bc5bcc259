/** The options of `deploy`. All are `multiple`, so that the command itself can refuse an option that is given twice. */
export const DEPLOY_OPTIONS = {
  stage: { value: 'NAME', help: 'the deployment: 1 to 19 characters of a-z, 0-9 and -', multiple: true },
  region: { value: 'REGION', help: 'the region (else AWS_REGION, AWS_DEFAULT_REGION, the profile)', multiple: true },
  account: { value: 'ID', help: 'refuse credentials of any other account', multiple: true },
  param: { value: 'NAME=VALUE', help: 'set a parameter; all others keep their values', multiple: true },
  reset: { value: 'NAME', help: 'set a parameter to its default', multiple: true },
  tag: { value: 'KEY=VALUE', help: 'put a tag on every resource', multiple: true },
  untag: { value: 'KEY', help: 'remove a tag from every resource', multiple: true },
  'allow-change': {
    value: 'NAME',
    help: 'allow this fixed parameter (a table, the bucket, the commit protocol, how callers sign) to change',
    multiple: true,
  },
  create: { help: 'create the stack if there is none; needed with --yes' },
  'role-arn': { value: 'ARN', help: 'the role that CloudFormation uses, now and later', multiple: true },
  plan: { help: 'only show the changes' },
  yes: { help: 'do not ask; needed without a terminal' },
} as const;

export const LIFT_OPTIONS = {
  table: { value: 'NAME', help: 'the restored table of leases', multiple: true },
  region: DEPLOY_OPTIONS.region,
  yes: { help: 'do not ask, even if callers use the table' },
} as const;

const { stage, region, account } = DEPLOY_OPTIONS;
const LOCATION = { stage, region, account };

export const DRAIN_OPTIONS = {
  ...LOCATION,
  timeout: { value: 'SECONDS', help: 'how long to wait (3600)', multiple: true },
  yes: DEPLOY_OPTIONS.yes,
} as const;

export const RESUME_OPTIONS = { ...LOCATION, yes: DEPLOY_OPTIONS.yes } as const;

export const HISTORY_OPTIONS = {
  ...LOCATION,
  since: { value: 'DURATION', help: 'how far back (7d)', multiple: true },
  limit: { value: 'N', help: 'only the last N events', multiple: true },
  json: { help: 'print JSON, one object a line' },
} as const;

export const PARAMETERS_OPTIONS = {
  ...LOCATION,
  all: { help: 'also show parameters that have their defaults' },
} as const;
