import { type Group, SCOPE } from './kinds.ts';

export const DEPLOYMENT: Group = {
  stage: {
    description:
      'The name of this deployment. It is part of the name of every resource, so it can never change. At most 14 characters fit in every region.',
    // The buckets for code have these names.
    pattern: '^(?!(bounded-)?code(-|$))[a-z0-9-]{1,19}$',
    constraint: 'must be 1 to 19 characters of a-z, 0-9 and -, and not begin with code or bounded-code',
    fixed: true,
    releasedOnly: true,
  },
  allowChange: {
    default: '',
    description:
      'The fixed parameters and limits that this update may change, each with its new value, such as leasesTable=my-leases, separated by spaces.',
    pattern: '^([A-Za-z]+=[!-~]*( [A-Za-z]+=[!-~]*)*)?$',
    constraint: 'must be name=value, with spaces between several, or empty',
    releasedOnly: true,
  },
  codeBucket: {
    description: 'The bucket in this region that holds the zips of the functions.',
    pattern: '^[a-z0-9.-]{3,63}$',
    constraint: 'must be the name of a bucket',
    releasedOnly: true,
  },
  codePrefix: {
    default: 'holdfast/',
    description: 'What the keys of the zips begin with in codeBucket.',
    pattern: '^([A-Za-z0-9._/-]*/)?$',
    constraint: 'must be empty or end in /',
    releasedOnly: true,
  },
};

/** A namespace, or nothing where one was removed. It becomes the name of a Lambda alias, which must not be a number. */
const NAMESPACE = '([0-9]{0,8}[a-z][a-z0-9-]{0,23})?';

/** The name of a state machine, or a pattern of such names. */
const MACHINES = '[a-zA-Z0-9_*?-]{1,80}';

export const CALLERS: Group = {
  auth: {
    default: 'iam',
    description: 'How callers of every route sign: with IAM, or with a JWT.',
    allowed: ['iam', 'jwt'],
    fixed: true,
  },
  jwtIssuer: {
    default: '',
    description: 'auth=jwt: the URL of the issuer of the tokens.',
    pattern: '^(https://[!-~]+)?$',
    constraint: 'must be a URL that begins with https://',
    fixed: true,
  },
  jwtAudience: {
    default: '',
    description: 'auth=jwt: the audiences, with commas between them. A token must name one of them.',
    pattern: '^[!-~]{0,256}$',
    constraint: 'must have no spaces',
    fixed: true,
  },
  jwtNamespaceClaim: {
    default: 'holdfast_namespace',
    description:
      'auth=jwt: the claim that names the namespaces of a caller, as a text for one or as a list for several.',
    pattern: '^[!-~]{1,256}$',
    constraint: 'must be the name of a claim',
    fixed: true,
  },
  adminScope: {
    default: 'holdfast/admin',
    description: 'auth=jwt: the scope that the routes without a namespace need.',
    ...SCOPE,
  },
  leasesScope: {
    default: 'holdfast/leases',
    description: 'auth=jwt: the scope that the leases of a namespace need.',
    ...SCOPE,
  },
  commitsScope: {
    default: 'holdfast/commits',
    description: 'auth=jwt: the scope that the commits of a namespace need.',
    ...SCOPE,
  },
  namesScope: {
    default: 'holdfast/names',
    description: 'auth=jwt: the scope that the nameservice of a namespace needs.',
    ...SCOPE,
  },
  expiredScope: {
    default: 'holdfast/expired',
    description: 'auth=jwt: the scope that the expired records of a namespace need.',
    ...SCOPE,
  },
  breakScope: {
    default: 'holdfast/leases.break',
    description: 'auth=jwt: the scope that break, cancel, cap, next and forget need.',
    ...SCOPE,
  },
  resetFenceScope: {
    default: 'holdfast/commits.repair',
    description: 'auth=jwt: the scope that resetFence needs.',
    ...SCOPE,
  },
  cleanScope: { default: 'holdfast/expired.clean', description: 'auth=jwt: the scope that clean needs.', ...SCOPE },
  repairScope: {
    default: 'holdfast/names.repair',
    description: 'auth=jwt: the scope that repair of the nameservice needs.',
    ...SCOPE,
  },
  namespaces: {
    default: '',
    description:
      'The namespaces of Step Functions tasks, at most eight, with commas between them. Each gets an alias on the functions that tasks call, and its own state machine exclusive.',
    pattern: `^${NAMESPACE}(,${NAMESPACE}){0,7}$`,
    constraint:
      'must be at most eight names of a-z, 0-9 and -, each with a letter before its first -, with commas between them',
    releasedOnly: true,
    limit: true,
  },
  exclusiveTargets: {
    default: '',
    description:
      'The names of the state machines that exclusive may start, at most eight, with commas between them. * and ? are wildcards. Empty: none.',
    pattern: `^(${MACHINES}(,${MACHINES}){0,7})?$`,
    constraint:
      'must be at most eight names of state machines, with * and ? for others and commas between them, or empty',
    limit: true,
  },
};
