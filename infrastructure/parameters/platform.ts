import { ARN, type Group, IDS, SWITCH } from './kinds.ts';

/** What platform teams ask for. All of it is off, or safe, by default. */
export const PLATFORM: Group = {
  permissionsBoundaryArn: {
    default: '',
    description: 'A managed policy that becomes the permissions boundary of every role of the stack.',
    ...ARN('iam', 'policy/'),
    limit: true,
  },
  kmsKeyArn: {
    default: '',
    description:
      'A KMS key for the tables, the log groups, the queues and the environment of the functions. The bucket has its own.',
    ...ARN('kms', 'key/'),
  },
  bucketKmsKeyArn: {
    default: '',
    description: 'A KMS key for the bucket that this stack creates. ETags are then no longer the MD5 of the bytes.',
    ...ARN('kms', 'key/'),
  },
  vpcSubnetIds: {
    default: '',
    description: 'Subnets of a VPC that the functions run in, with commas between them.',
    ...IDS('subnet'),
  },
  vpcSecurityGroupIds: { default: '', description: 'Security groups of the functions in these subnets.', ...IDS('sg') },
  tracing: {
    default: 'PassThrough',
    description: 'Active: the functions and the wrappers exclusive send traces to X-Ray.',
    allowed: ['PassThrough', 'Active'],
  },
  logFormat: {
    default: 'Text',
    description: 'JSON: Lambda writes its own log lines as JSON too. The lines of Holdfast are JSON either way.',
    allowed: ['Text', 'JSON'],
  },
  accessLogs: {
    default: 'true',
    description: 'Whether API Gateway logs each request, without its body.',
    allowed: SWITCH,
  },
  dashboard: {
    default: 'true',
    description:
      'Whether the stack has a CloudWatch dashboard. Each dashboard after the third of an account costs $3 a month.',
    allowed: SWITCH,
  },
  throttlingRate: {
    default: '2000',
    description: 'Requests a second that API Gateway accepts on each route.',
    min: 1,
    max: 100000,
  },
  throttlingBurst: {
    default: '1000',
    description: 'Requests at once that API Gateway accepts on each route.',
    min: 1,
    max: 100000,
  },
  throttleLists: {
    default: 'true',
    description:
      'Whether API Gateway limits each route that lists leases, keys of once or rates, commits in flight or expired records to 200 requests a second and 200 at once, because their scans use the capacity of the tables.',
    allowed: SWITCH,
  },
  alarmOkTopicArn: { default: '', description: 'An SNS topic that is notified when an alarm ends.', ...ARN('sns') },
  domainName: {
    default: '',
    description: 'Your own domain for the API.',
    pattern: '^([a-z0-9*-]+(\\.[a-z0-9-]+)+)?$',
    constraint: 'must be a domain name, or empty',
  },
  disableExecuteApiEndpoint: {
    default: 'false',
    description: 'true: the API answers only under domainName, and no longer under the name that AWS gives it.',
    allowed: SWITCH,
  },
  certificateArn: {
    default: '',
    description: 'The certificate of domainName, in this region.',
    ...ARN('acm', 'certificate/'),
  },
  hostedZoneId: {
    default: '',
    description: 'The Route 53 hosted zone in which the stack creates the record of domainName.',
    pattern: '^(Z[A-Z0-9]+)?$',
    constraint: 'must be the id of a hosted zone, or empty',
  },
};

export const releasedOnly = (group: Group): Group =>
  Object.fromEntries(Object.entries(group).map(([name, parameter]) => [name, { ...parameter, releasedOnly: true }]));
