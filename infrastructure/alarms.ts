import { capital, lambdaId } from './logical-ids.ts';

/** Every alarm, as serverless.yml includes it. To watch one thing more, add a row to FUNCTIONS, TABLES or METRICS. */

interface FunctionGroup {
  /** What the alarms' ids begin with. */
  id: string;
  /** What the alarms' descriptions begin with. */
  subject: string;
  crashes?: string[];
  throttles?: string[];
}

const LEASES = ['acquire', 'heartbeat', 'release', 'breakLease', 'readLeases'];
const QUEUE = ['cancelWaiter', 'withdraw', 'repairQueues', 'executionEnded'];
const NAMESERVICE = ['publish', 'readNames', 'repairNames'];
const COMMITS = ['commit', 'stageUpload', 'readCommit', 'readInFlight', 'resetFence'];
const EXPIRY = ['report', 'readExpired', 'clean'];
const CONTRACT = ['readContract', 'whoami', 'readHealth'];

/** One alarm takes ten metrics, and an alarm on crashes needs two for each function. Hence the queue's functions have their own. */
const FUNCTIONS: FunctionGroup[] = [
  { id: 'Lease', subject: 'A lease function', crashes: LEASES, throttles: [...LEASES, ...QUEUE] },
  { id: 'Queue', subject: 'A function of the queues', crashes: QUEUE },
  { id: 'Nameservice', subject: 'A nameservice function', crashes: NAMESERVICE, throttles: NAMESERVICE },
  { id: 'Commit', subject: 'A commit function', crashes: COMMITS, throttles: COMMITS },
  { id: 'Expiry', subject: 'A function of the report or the clean-up', crashes: EXPIRY, throttles: EXPIRY },
  { id: 'Contract', subject: 'A function that describes the API', crashes: CONTRACT, throttles: CONTRACT },
];

interface Table {
  id: string;
  subject: string;
  name: string;
  index?: string;
}

const TABLES: Table[] = [
  {
    id: 'LeasesTable',
    subject: 'the leases table or its index',
    name: `\${self:custom.leasesTable}`,
    index: 'by-execution',
  },
  {
    id: 'WaitersTable',
    subject: 'the waiters table or its index',
    name: `\${self:custom.waitersTable}`,
    index: 'by-execution',
  },
  {
    id: 'NameserviceTable',
    subject: 'the nameservice table or its index',
    name: `\${self:custom.nameserviceTable}`,
    index: 'gsi1-kind',
  },
  { id: 'CommitsTable', subject: 'the commits table', name: `\${self:custom.commitsTable}` },
];

type Dimensions = Record<string, unknown>;

interface Metric {
  description: string;
  namespace: string;
  name: string;
  dimensions: Dimensions;
  statistic: 'Sum' | 'Maximum';
  periodSeconds: number;
}

const SERVICE = { service: `\${self:service}-\${sls:stage}` };
const MESSAGES = { namespace: 'AWS/SQS', name: 'ApproximateNumberOfMessagesVisible' };
const queue = (id: string) => ({ QueueName: { 'Fn::GetAtt': [id, 'QueueName'] } });

const METRICS: Record<string, Metric> = {
  // Failures that no caller is to blame for: Unavailable and OutcomeUnknown, through any adapter.
  FaultsAlarm: {
    description: 'Holdfast answered with Unavailable or OutcomeUnknown',
    namespace: 'Holdfast',
    name: 'Faults',
    dimensions: SERVICE,
    statistic: 'Sum',
    periodSeconds: 300,
  },
  ExecutionEndedDeadLettersAlarm: {
    description: 'The leases of an execution that has ended could not be freed; they stay until they expire',
    ...MESSAGES,
    dimensions: queue('ExecutionEndedDeadLetters'),
    statistic: 'Maximum',
    periodSeconds: 300,
  },
  RepairsCutShortAlarm: {
    description: 'A run of repairQueues ended before it had looked at every key with a line',
    namespace: 'Holdfast',
    name: 'RepairsCutShort',
    dimensions: SERVICE,
    statistic: 'Sum',
    periodSeconds: 300,
  },
  FailedEventsAlarm: {
    description: 'A function failed at an event of EventBridge, also when it was tried again',
    ...MESSAGES,
    dimensions: queue('FailedEventsQueue'),
    statistic: 'Maximum',
    periodSeconds: 300,
  },
  AbandonedLeasesAlarm: {
    description: 'A lease expired while it was held, and nobody took it over',
    namespace: 'Holdfast',
    name: 'ExpiredRecords',
    dimensions: { ...SERVICE, kind: 'abandonedLease' },
    statistic: 'Maximum',
    periodSeconds: 900,
  },
  AbandonedPermitsAlarm: {
    description: 'A permit expired while it was held, and nobody took its place',
    namespace: 'Holdfast',
    name: 'ExpiredRecords',
    dimensions: { ...SERVICE, kind: 'abandonedPermit' },
    statistic: 'Maximum',
    periodSeconds: 900,
  },
  NamespaceLeasesAlarm: {
    description: 'A namespace holds more leases and permits than maxLeasesPerNamespace',
    namespace: 'Holdfast',
    name: 'NamespacesOverQuota',
    dimensions: SERVICE,
    statistic: 'Maximum',
    periodSeconds: 900,
  },
};

/** What serverless.yml includes. */
export const alarms = () => ({
  Conditions: { NotifyAlarms: { 'Fn::Not': [{ 'Fn::Equals': [`\${param:alarmTopicArn, ''}`, ''] }] } },
  Resources: Object.fromEntries([
    ...Object.entries(METRICS).map(([id, metric]) => [id, onMetric(metric)]),
    ['ReportOverdueAlarm', onOverdueReport()],
    ...FUNCTIONS.flatMap((group) => [...onFunctions(group)]),
    ...TABLES.map((table) => [`${table.id}ThrottlesAlarm`, onTable(table)]),
  ]),
});

function onMetric({ description, namespace, name, dimensions, statistic, periodSeconds }: Metric): object {
  const metric = { Namespace: namespace, MetricName: name, Dimensions: named(dimensions) };
  return alarm(description, { ...metric, Statistic: statistic, Period: periodSeconds });
}

/**
 * On a new stack no report has completed yet. So the alarm waits until the schedule of each minute has run for half of
 * the period, which shows that the stack is older.
 */
function onOverdueReport(): object {
  const period = `\${param:reportOverdueSeconds}`;
  return alarm('No report of expired records has completed for an hour, or for reportOverdueSeconds', {
    Metrics: [
      {
        Id: 'overdue',
        Expression: 'IF(minutes * 120 >= PERIOD(minutes) AND SUM([FILL(completed, 0), minutes * 0]) < 1, 1, 0)',
      },
      sumOf('completed', ['Holdfast', 'ReportCompleted', period], SERVICE),
      sumOf('minutes', ['AWS/Lambda', 'Invocations', period], lambda('repairQueues')),
    ],
  });
}

function* onFunctions({ id, subject, crashes, throttles }: FunctionGroup): Generator<[string, object]> {
  if (crashes)
    yield [
      `${id}ErrorsAlarm`,
      alarm(`${subject} crashed or ran out of time`, {
        Metrics: [
          { Id: 'crashes', Expression: 'SUM(FILL(METRICS("errors"), 0)) - SUM(FILL(METRICS("expected"), 0))' },
          ...crashes.map((name) => sumOf(`errors${capital(name)}`, ['AWS/Lambda', 'Errors'], lambda(name))),
          // A task learns of LeaseHeld by a thrown error, which Lambda counts among its Errors. The alarm subtracts those.
          // Both counts carry the time at which the call arrived, so that they fall into the same period.
          ...crashes.map((name) =>
            sumOf(`expected${capital(name)}`, ['Holdfast', 'TaskFailures'], { ...SERVICE, function: name }),
          ),
        ],
      }),
    ];
  if (throttles)
    yield [
      `${id}ThrottlesAlarm`,
      alarm(`${subject} was not started, for want of concurrency`, {
        Metrics: [
          { Id: 'notStarted', Expression: 'SUM(FILL(METRICS("throttles"), 0))' },
          ...throttles.map((name) => sumOf(`throttles${capital(name)}`, ['AWS/Lambda', 'Throttles'], lambda(name))),
        ],
      }),
    ];
}

function onTable({ subject, name, index }: Table): object {
  const table = { TableName: name };
  const readAndWrite = (of: string, dimensions: Dimensions) =>
    ['Read', 'Write'].map((kind) => sumOf(`events${of}${kind}`, ['AWS/DynamoDB', `${kind}ThrottleEvents`], dimensions));
  return alarm(`DynamoDB throttles ${subject}`, {
    Metrics: [
      { Id: 'throttles', Expression: 'SUM(FILL(METRICS("events"), 0))' },
      ...readAndWrite('', table),
      ...(index ? readAndWrite('Index', { ...table, GlobalSecondaryIndexName: index }) : []),
    ],
  });
}

const alarm = (description: string, properties: object) => ({
  Type: 'AWS::CloudWatch::Alarm',
  Properties: {
    AlarmDescription: description,
    EvaluationPeriods: 1,
    Threshold: 0,
    ComparisonOperator: 'GreaterThanThreshold',
    TreatMissingData: 'notBreaching',
    AlarmActions: [{ 'Fn::If': ['NotifyAlarms', `\${param:alarmTopicArn, ''}`, { Ref: 'AWS::NoValue' }] }],
    ...properties,
  },
});

type SummedMetric = [namespace: string, name: string, periodSeconds?: number | string];

const sumOf = (id: string, [namespace, name, period = 300]: SummedMetric, dimensions: Dimensions) => ({
  Id: id,
  ReturnData: false,
  MetricStat: {
    Period: period,
    Stat: 'Sum',
    Metric: { Namespace: namespace, MetricName: name, Dimensions: named(dimensions) },
  },
});

const named = (dimensions: Dimensions) => Object.entries(dimensions).map(([Name, Value]) => ({ Name, Value }));
const lambda = (name: string) => ({ FunctionName: { Ref: lambdaId(name) } });
