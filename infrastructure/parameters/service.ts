import { COUNT, type Group, SWITCH, WHOLE } from './kinds.ts';

export const LEASES: Group = {
  clockSkewMs: {
    default: '500',
    description: 'How far clocks may differ, in milliseconds. An expired lease stays protected for this long.',
    ...WHOLE,
  },
  maxWaitSeconds: {
    default: '20',
    description: 'The longest wait of a call, in seconds. A longer waitSeconds is cut to this.',
    ...WHOLE,
  },
  maxHeldCalls: {
    default: '100',
    description: 'How many waiting calls the service holds at once, each in its own Lambda environment. 0: none.',
    min: 0,
    max: 10000,
  },
  maxWaitersPerKey: {
    default: '10000',
    description: 'How many tasks and calls may be in line for a key.',
    min: 0,
    max: 100000,
  },
  maxWaitersPerNamespace: {
    default: '100000',
    description: 'How many tasks and calls may be in line in a namespace. They are counted once a minute.',
    min: 1,
    max: 1000000,
  },
  maxLeasesPerNamespace: {
    default: '10000',
    description: 'An alarm fires if a namespace holds more leases and permits than this.',
    min: 1,
    max: 1000000,
  },
  fenceRetentionSeconds: {
    default: '3600',
    description: "How long a released record stays before DynamoDB's TTL may delete it, in seconds.",
    ...WHOLE,
  },
  acquireConcurrency: {
    default: '',
    description: 'Reserved concurrency of acquire. 0 stops acquire.',
    ...COUNT,
  },
  drained: {
    default: 'false',
    description:
      'true: acquire, onceBegin and rateReserve do not run, so that no work begins. All other calls still run, such as heartbeat and release.',
    allowed: SWITCH,
    releasedOnly: true,
  },
  heartbeatConcurrency: { default: '', description: 'Reserved concurrency of heartbeat.', ...COUNT },
  releaseConcurrency: { default: '', description: 'Reserved concurrency of release.', ...COUNT },
  namespaceExecutions: {
    default: 'auto',
    description:
      'own: callers of a namespace may name only executions of state machines whose names begin with the namespace and a hyphen. any: executions of all state machines. auto: own if the parameter namespaces is set, and any otherwise.',
    allowed: ['auto', 'any', 'own'],
    limit: true,
  },
  executionStateMachines: {
    default: '*',
    description:
      'The name of the state machines whose executions may hold leases. * is a wildcard. The functions do not get access to other executions.',
    pattern: '^[a-zA-Z0-9_*-]{1,80}$',
    constraint: 'must be the name of state machines, in which * is a wildcard',
    limit: true,
  },
  durableFunctions: {
    default: '',
    description:
      'The name of the durable functions whose callbacks may wait for leases, and whose executions may hold them. * is a wildcard. Do not name functions that use callbacks for approvals. Empty: none.',
    pattern: '^[a-zA-Z0-9_*-]{0,140}$',
    constraint: 'must be the name of functions, in which * is a wildcard, or empty',
    limit: true,
  },
  executionEvents: {
    default: 'ENABLED',
    description:
      'Whether events free the leases of executions that end. DISABLED: these leases stay until they expire.',
    allowed: ['ENABLED', 'DISABLED'],
  },
};

export const COMMITS: Group = {
  commitProtocol: {
    default: 'dynamo',
    description: 'dynamo: shares the commits table with writers of object_store. native: relies on S3 alone.',
    allowed: ['dynamo', 'native'],
    fixed: true,
  },
  commitTimeoutMs: {
    default: '20000',
    description:
      'How long the record of an interrupted commit blocks third-party writers, in milliseconds. All of them need the same value.',
    ...WHOLE,
  },
  maxClockSkewRate: {
    default: '3',
    description: 'The record of a third-party client can be taken over after its timeout, multiplied by this number.',
    ...WHOLE,
  },
  commitTtlSeconds: {
    default: '3600',
    description: "How long a commit record stays before DynamoDB's TTL may delete it, in seconds.",
    ...WHOLE,
  },
  maxUploadMib: {
    default: '1024',
    description: 'The largest upload that can be committed, in MiB, at most 5120.',
    ...WHOLE,
  },
  multipartThresholdMib: {
    default: '256',
    description: 'Staged uploads of more than this many MiB are copied in parts.',
    ...WHOLE,
  },
  multipartPartMib: {
    default: '64',
    description: 'The size of the parts in which a large staged upload is copied, in MiB.',
    ...WHOLE,
  },
};

export const NAMESERVICE: Group = {
  pointerAttributes: {
    default: 'address',
    description:
      'The attribute in which the table keeps addresses of commits and indexes. id: for tables of public Fluree 4.',
    allowed: ['address', 'id'],
    fixed: true,
  },
};

export const EXPIRED_RECORDS: Group = {
  reportSchedule: {
    default: 'rate(15 minutes)',
    description: 'How often EventBridge starts a report.',
    pattern:
      '^(rate\\(1 (minute|hour|day)\\)|rate\\(([2-9]|[1-9][0-9]+) (minutes|hours|days)\\)|cron\\([^ ]+( [^ ]+){5}\\))$',
    constraint: 'must be like rate(1 hour) or rate(15 minutes), or cron(...) with six fields',
  },
  reportReadUnitsPerSecond: {
    default: '500',
    description: 'The most read units that a report uses in a second. 0: no limit.',
    ...WHOLE,
  },
  reportSegments: {
    default: '4',
    description: 'How many segments of each table a report scans at once, at most 64.',
    ...WHOLE,
  },
  reportGiveUpHours: {
    default: '24',
    description: 'A report that is not complete after this many hours starts again.',
    ...WHOLE,
  },
  reportOverdueSeconds: {
    default: '3600',
    description: 'An alarm fires if no report has been complete for this many seconds.',
    min: 60,
    max: 86400, // the longest CloudWatch period
  },
  autoClean: { default: 'false', description: 'true: a clean-up follows each report.', allowed: SWITCH },
  autoCleanOlderThanSeconds: {
    default: '86400',
    description: 'How long ago a record must have expired before the automatic clean-up deletes it, in seconds.',
    ...WHOLE,
  },
};
