import { COUNT, type Group, SWITCH, WHOLE } from './kinds.ts';

export const LEASES: Group = {
  clockSkewMs: {
    default: '500',
    description: 'How far clocks may differ, in milliseconds. An expired lease stays protected for this long.',
    ...WHOLE,
  },
  maxWaitSeconds: { default: '20', description: 'A longer waitSeconds of acquire is cut to this.', ...WHOLE },
  maxHeldCalls: {
    default: '100',
    description: 'How many calls that wait the service holds at once, each in an environment of Lambda. 0: none.',
    least: 0,
    most: 10000,
  },
  maxWaitersPerKey: {
    default: '10000',
    description: 'How many tasks and calls may be in line for a key.',
    least: 0,
    most: 100000,
  },
  maxWaitersPerNamespace: {
    default: '100000',
    description: 'How many tasks and calls may be in line in a namespace, as each minute counts them.',
    least: 1,
    most: 1000000,
  },
  maxLeasesPerNamespace: {
    default: '10000',
    description: 'An alarm fires if a namespace holds more leases and permits than this.',
    least: 1,
    most: 1000000,
  },
  fenceRetentionSeconds: {
    default: '3600',
    description: 'How long a released record stays before TTL may delete it.',
    ...WHOLE,
  },
  acquireConcurrency: {
    default: '',
    description: 'Reserved concurrency of acquire. 0: no call of acquire runs.',
    ...COUNT,
  },
  drained: {
    default: 'false',
    description:
      'true: no call of acquire, onceBegin or rateReserve runs. All other calls still run, such as heartbeat and release.',
    allowed: SWITCH,
    releasedOnly: true,
  },
  heartbeatConcurrency: { default: '', description: 'Reserved concurrency of heartbeat.', ...COUNT },
  releaseConcurrency: { default: '', description: 'Reserved concurrency of release.', ...COUNT },
  namespaceExecutions: {
    default: 'auto',
    description:
      'own: callers of a namespace may name only executions of state machines whose names begin with the namespace and a hyphen. any: executions of all state machines. auto: own if the parameter namespaces is not empty.',
    allowed: ['auto', 'any', 'own'],
    limit: true,
  },
  executionStateMachines: {
    default: '*',
    description:
      'The name of the state machines whose executions may hold leases. * is a wildcard. The functions have no access to other executions.',
    pattern: '^[a-zA-Z0-9_*-]{1,80}$',
    constraint: 'must be the name of state machines, with * for others',
    limit: true,
  },
  durableFunctions: {
    default: '',
    description:
      'The name of the durable functions whose callbacks may wait for leases and whose executions may hold them; * stands for others. Name no functions whose callbacks are approvals. Empty: none.',
    pattern: '^[a-zA-Z0-9_*-]{0,140}$',
    constraint: 'must be the name of functions, with * for others, or empty',
    limit: true,
  },
  executionEvents: {
    default: 'ENABLED',
    description: 'DISABLED: leases of executions that end stay until they expire.',
    allowed: ['ENABLED', 'DISABLED'],
  },
};

export const COMMITS: Group = {
  commitProtocol: {
    default: 'dynamo',
    description: 'dynamo shares the commits table with writers of object_store; native relies on S3 alone.',
    allowed: ['dynamo', 'native'],
    fixed: true,
  },
  commitTimeoutMs: {
    default: '20000',
    description:
      'Milliseconds until the path of an interrupted commit is free. All clients of the commits table need the same value.',
    ...WHOLE,
  },
  maxClockSkewRate: {
    default: '3',
    description: 'The record of a third-party client can be taken over after its timeout times this.',
    ...WHOLE,
  },
  commitTtlSeconds: {
    default: '3600',
    description: 'How long a commit record stays before TTL may delete it.',
    ...WHOLE,
  },
  maxUploadMib: { default: '1024', description: 'A larger upload cannot be committed; at most 5120.', ...WHOLE },
  multipartThresholdMib: { default: '256', description: 'A staged upload above this is copied in parts.', ...WHOLE },
  multipartPartMib: { default: '64', description: 'The size of these parts.', ...WHOLE },
};

export const NAMESERVICE: Group = {
  pointerAttributes: {
    default: 'address',
    description: 'The attribute for commits and indexes; id is for tables of public Fluree 4.',
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
    description: 'The most that a report reads per second; 0 for no limit.',
    ...WHOLE,
  },
  reportSegments: { default: '4', description: 'Segments of each table that are scanned at once, to 64.', ...WHOLE },
  reportGiveUpHours: {
    default: '24',
    description: 'A report that has not ended after this many hours starts again.',
    ...WHOLE,
  },
  reportOverdueSeconds: {
    default: '3600',
    description: 'An alarm fires after this long without a complete report.',
    least: 60,
    most: 86400, // the longest period of CloudWatch
  },
  autoClean: { default: 'false', description: 'true: a clean-up follows each report.', allowed: SWITCH },
  autoCleanOlderThanSeconds: {
    default: '86400',
    description: 'Minimum age of a record that automatic clean-up deletes.',
    ...WHOLE,
  },
};
