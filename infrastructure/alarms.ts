import type { Kind } from '../shared/expiry/kinds.ts';
import { capital, lambdaId } from './logical-ids.ts';

/**
 * All alarms, which serverless.yml includes. For a new one, add a row to FUNCTIONS, TABLES or METRICS, a section to docs/operations.md, and the cost
 * to docs/cost.md: CloudWatch charges for each metric of an alarm.
 */

/**
 * A page wakes an operator, because callers are refused or wait now. It needs two of the last three periods, because callers retry. A ticket can wait
 * for the next morning, so a single event fires it. `alarms=essential` creates only the pages.
 */
type Urgency = 'page' | 'ticket';

const PERIODS = {
  page: { EvaluationPeriods: 3, DatapointsToAlarm: 2 },
  ticket: { EvaluationPeriods: 1 },
};

interface FunctionGroup {
  /** The beginning of the ids of the alarms. */
  id: string;
  /** The beginning of the descriptions of the alarms. */
  subject: string;
  urgency: Urgency;
  crashes?: string[];
  throttles?: string[];
}

const LEASES = ['acquire', 'heartbeat', 'release', 'withdraw'];
const LINE = ['repairQueues', 'executionEnded'];
const OPERATOR = ['breakLease', 'readLeases', 'cancelWaiter', 'capKey', 'runNext'];
const ONCE = ['onceBegin', 'onceComplete', 'onceForget', 'readOnce'];
const RATES = ['rateReserve', 'rateSettle', 'rateForget', 'readRates'];
const NAMESERVICE = ['publish', 'readNames', 'repairNames'];
const COMMITS = ['commit', 'stageUpload', 'readCommit', 'readInFlight', 'resetFence'];
const EXPIRY = ['report', 'readExpired', 'clean'];
const CONTRACT = ['readContract', 'whoami', 'readHealth'];

/** An alarm can have ten metrics, and an alarm on crashes needs two for each function. So the functions of leases form three groups. */
const FUNCTIONS: FunctionGroup[] = [
  { id: 'Lease', subject: 'A lease function', urgency: 'page', crashes: LEASES, throttles: [...LEASES, ...LINE] },
  { id: 'Queue', subject: 'A function that serves waiters', urgency: 'page', crashes: LINE },
  { id: 'Once', subject: 'A function of once', urgency: 'ticket', crashes: ONCE, throttles: ONCE },
  { id: 'Rate', subject: 'A function of rates', urgency: 'ticket', crashes: RATES, throttles: RATES },
  {
    id: 'Operator',
    subject: 'A function that operators call',
    urgency: 'ticket',
    crashes: OPERATOR,
    throttles: OPERATOR,
  },
  {
    id: 'Nameservice',
    subject: 'A nameservice function',
    urgency: 'ticket',
    crashes: NAMESERVICE,
    throttles: NAMESERVICE,
  },
  { id: 'Commit', subject: 'A commit function', urgency: 'ticket', crashes: COMMITS, throttles: COMMITS },
  {
    id: 'Expiry',
    subject: 'A function of the report or the clean-up',
    urgency: 'ticket',
    crashes: EXPIRY,
    throttles: EXPIRY,
  },
  {
    id: 'Contract',
    subject: 'A function that describes the API',
    urgency: 'ticket',
    crashes: CONTRACT,
    throttles: CONTRACT,
  },
];

interface Table {
  id: string;
  subject: string;
  urgency: Urgency;
  name: string;
  index?: string;
}

const TABLES: Table[] = [
  {
    id: 'LeasesTable',
    subject: 'the leases table or its index',
    urgency: 'page',
    name: `\${self:custom.leasesTable}`,
    index: 'by-execution',
  },
  {
    id: 'WaitersTable',
    subject: 'the waiters table or its index',
    urgency: 'ticket',
    name: `\${self:custom.waitersTable}`,
    index: 'by-execution',
  },
  {
    id: 'NameserviceTable',
    subject: 'the nameservice table or its index',
    urgency: 'ticket',
    name: `\${self:custom.nameserviceTable}`,
    index: 'gsi1-kind',
  },
  { id: 'CommitsTable', subject: 'the commits table', urgency: 'ticket', name: `\${self:custom.commitsTable}` },
];

type Dimensions = Record<string, unknown>;

interface Metric {
  description: string;
  urgency: Urgency;
  namespace: string;
  name: string;
  dimensions: Dimensions;
  statistic: 'Sum' | 'Maximum';
  periodSeconds: number;
  threshold?: number | string;
}

const SERVICE = { service: `\${self:service}-\${sls:stage}` };
const MESSAGES = { namespace: 'AWS/SQS', name: 'ApproximateNumberOfMessagesVisible' };
const queue = (id: string) => ({ QueueName: { 'Fn::GetAtt': [id, 'QueueName'] } });

/** Fires if a report lists a record of this kind. */
const reported = (kind: Kind, description: string): Metric => ({
  ...{ description, urgency: 'ticket', statistic: 'Maximum', periodSeconds: 900 },
  ...{ namespace: 'Holdfast', name: 'ExpiredRecords', dimensions: { ...SERVICE, kind } },
});

const METRICS: Record<string, Metric> = {
  // Unavailable and OutcomeUnknown are never the fault of a caller, whether it came through HTTP or as a task.
  FaultsAlarm: {
    description: 'Holdfast answers with Unavailable or OutcomeUnknown',
    urgency: 'page',
    namespace: 'Holdfast',
    name: 'Faults',
    dimensions: SERVICE,
    statistic: 'Sum',
    periodSeconds: 300,
  },
  OldestWaiterAlarm: {
    description: 'A task or a call has been in line for longer than waiterOverdueSeconds',
    urgency: 'page',
    namespace: 'Holdfast',
    name: 'OldestTicketAgeSeconds',
    dimensions: SERVICE,
    statistic: 'Maximum',
    periodSeconds: 300,
    threshold: `\${param:waiterOverdueSeconds}`,
  },
  ExecutionEndedDeadLettersAlarm: {
    description: 'The leases of an execution that has ended could not be freed, so they stay until they expire',
    urgency: 'ticket',
    ...MESSAGES,
    dimensions: queue('ExecutionEndedDeadLetters'),
    statistic: 'Maximum',
    periodSeconds: 300,
  },
  RepairsCutShortAlarm: {
    description: 'A run of repairQueues ended before it had checked every key with a line',
    urgency: 'ticket',
    namespace: 'Holdfast',
    name: 'RepairsCutShort',
    dimensions: SERVICE,
    statistic: 'Sum',
    periodSeconds: 300,
  },
  FailedEventsAlarm: {
    description: 'A function failed to handle an EventBridge event, even after all retries',
    urgency: 'ticket',
    ...MESSAGES,
    dimensions: queue('FailedEventsQueue'),
    statistic: 'Maximum',
    periodSeconds: 300,
  },
  AbandonedLeasesAlarm: reported(
    'abandonedLease',
    'A lease expired while it was held, and no other caller took it over',
  ),
  AbandonedPermitsAlarm: reported(
    'abandonedPermit',
    'A permit expired while it was held, and no other caller took it over',
  ),
  HoldersEndedAlarm: reported('holderEnded', 'An execution has ended, and still holds a bound lease or permit'),
  HoldersUnknownAlarm: reported(
    'holderUnknown',
    'AWS does not say whether the execution of a bound lease or permit still runs, so its end does not free the key',
  ),
  NamespaceLeasesAlarm: {
    description: 'A namespace holds more leases and permits than maxLeasesPerNamespace',
    urgency: 'ticket',
    namespace: 'Holdfast',
    name: 'NamespacesOverQuota',
    dimensions: SERVICE,
    statistic: 'Maximum',
    periodSeconds: 900,
  },
};

export const alarms = () => ({
  Conditions: {
    AllAlarms: { 'Fn::Equals': [`\${param:alarms}`, 'all'] },
    PageAlarms: { 'Fn::Not': [{ 'Fn::Equals': [`\${param:alarms}`, 'none'] }] },
    NotifyAlarms: isGiven('alarmTopicArn'),
    NotifyTickets: isGiven('ticketTopicArn'),
    LinkRunbook: isGiven('runbookUrl'),
  },
  Resources: Object.fromEntries(
    [
      ...Object.entries(METRICS).map(([id, metric]): AlarmWithId => [id, metricAlarm(metric)]),
      ...(Object.entries({
        ApiErrorsAlarm: apiErrorsAlarm(),
        LeaseLatencyAlarm: latencyAlarm(),
        ReportOverdueAlarm: overdueReportAlarm(),
      }) as AlarmWithId[]),
      ...FUNCTIONS.flatMap((group) => [...functionAlarms(group)]),
      ...TABLES.map((table): AlarmWithId => [`${table.id}ThrottlesAlarm`, tableAlarm(table)]),
    ].map(([id, alarm]) => [id, resource(id, alarm)]),
  ),
});

const isGiven = (name: string) => ({ 'Fn::Not': [{ 'Fn::Equals': [`\${param:${name}, ''}`, ''] }] });

interface Alarm {
  description: string;
  urgency: Urgency;
  properties: { Threshold?: number | string } & Record<string, unknown>;
}
type AlarmWithId = [id: string, alarm: Alarm];

function metricAlarm({ namespace, name, dimensions, statistic, periodSeconds, threshold = 0, ...rest }: Metric): Alarm {
  const metric = { Namespace: namespace, MetricName: name, Dimensions: dimensionList(dimensions) };
  return { ...rest, properties: { ...metric, Statistic: statistic, Period: periodSeconds, Threshold: threshold } };
}

/** Counts the errors that callers receive: those of functions, and those of the gateway when it cannot start a function. */
function apiErrorsAlarm(): Alarm {
  const apiSeries = (id: string, name: string) => seriesOf(id, ['AWS/ApiGateway', name], { ApiId: { Ref: 'HttpApi' } });
  return {
    description: 'More than 1 % of the requests to the API, and more than five in five minutes, are answered with 5xx',
    urgency: 'page',
    properties: {
      Metrics: [
        { Id: 'percent', Expression: 'IF(failed > 5, 100 * failed / requests, 0)' },
        apiSeries('failed', '5xx'),
        apiSeries('requests', 'Count'),
      ],
      Threshold: 1,
    },
  };
}

/** Acquire takes as long as its caller waits, so it says nothing about latency. Heartbeat and release write the same records, and never wait. */
function latencyAlarm(): Alarm {
  const slowest = (name: string) => seriesOf(name, ['AWS/Lambda', 'Duration', 300, 'p99'], lambda(name));
  return {
    description: 'The slowest percent of heartbeats or releases takes longer than a second',
    urgency: 'page',
    properties: {
      Metrics: [
        { Id: 'slowest', Expression: 'MAX([FILL(heartbeat, 0), FILL(release, 0)])' },
        slowest('heartbeat'),
        slowest('release'),
      ],
      Threshold: 1000,
    },
  };
}

/**
 * On a new stack, no report is complete yet. So the alarm first waits until a function that runs each minute has run for half of the period, which
 * shows that the stack is old enough.
 */
function overdueReportAlarm(): Alarm {
  const period = `\${param:reportOverdueSeconds}`;
  return {
    description: 'No report of expired records has completed for an hour, or for reportOverdueSeconds',
    urgency: 'ticket',
    properties: {
      Metrics: [
        {
          Id: 'overdue',
          Expression: 'IF(minutes * 120 >= PERIOD(minutes) AND SUM([FILL(completed, 0), minutes * 0]) < 1, 1, 0)',
        },
        seriesOf('completed', ['Holdfast', 'ReportCompleted', period], SERVICE),
        seriesOf('minutes', ['AWS/Lambda', 'Invocations', period], lambda('repairQueues')),
      ],
    },
  };
}

function* functionAlarms({ id, subject, urgency, crashes, throttles }: FunctionGroup): Generator<AlarmWithId> {
  if (crashes) {
    const Metrics = [
      { Id: 'crashes', Expression: 'SUM(FILL(METRICS("errors"), 0)) - SUM(FILL(METRICS("expected"), 0))' },
      ...crashes.map((name) => seriesOf(`errors${capital(name)}`, ['AWS/Lambda', 'Errors'], lambda(name))),
      // For a task, a function throws errors such as LeaseHeld, which Lambda counts among its Errors. The alarm subtracts those.
      // Both counts carry the time at which the call arrived, so they fall into the same period.
      ...crashes.map((name) =>
        seriesOf(`expected${capital(name)}`, ['Holdfast', 'TaskFailures'], { ...SERVICE, function: name }),
      ),
    ];
    const description = `${subject} crashed or ran out of time`;
    yield [`${id}ErrorsAlarm`, { description, urgency, properties: { Metrics } }];
  }
  if (throttles) {
    const Metrics = [
      { Id: 'notStarted', Expression: 'SUM(FILL(METRICS("throttles"), 0))' },
      ...throttles.map((name) => seriesOf(`throttles${capital(name)}`, ['AWS/Lambda', 'Throttles'], lambda(name))),
    ];
    const description = `${subject} was not started, because no concurrency was left`;
    yield [`${id}ThrottlesAlarm`, { description, urgency, properties: { Metrics } }];
  }
}

function tableAlarm({ subject, urgency, name, index }: Table): Alarm {
  const table = { TableName: name };
  const readAndWrite = (of: string, dimensions: Dimensions) =>
    ['Read', 'Write'].map((kind) =>
      seriesOf(`events${of}${kind}`, ['AWS/DynamoDB', `${kind}ThrottleEvents`], dimensions),
    );
  const Metrics = [
    { Id: 'throttles', Expression: 'SUM(FILL(METRICS("events"), 0))' },
    ...readAndWrite('', table),
    ...(index ? readAndWrite('Index', { ...table, GlobalSecondaryIndexName: index }) : []),
  ];
  return { description: `DynamoDB throttles ${subject}`, urgency, properties: { Metrics } };
}

/** Alarms that share a section of the runbook, in the order of its heading. Every other alarm has its own section. */
const SECTIONS = [
  FUNCTIONS.map(({ id }) => `${id}Errors`),
  FUNCTIONS.flatMap(({ id, throttles }) => (throttles ? [`${id}Throttles`] : [])),
  ['LeasesTableThrottles', 'NameserviceTableThrottles', 'CommitsTableThrottles'],
];

/** The anchor of the alarm's section in docs/operations.md. */
function anchorOf(id: string): string {
  const name = id.replace(/Alarm$/, '');
  const names = SECTIONS.find((section) => section.includes(name)) ?? [name];
  return names.join('-').toLowerCase();
}

/** Tickets go to the same topic as pages, unless they have their own. */
const ACTIONS = {
  page: { 'Fn::If': ['NotifyAlarms', `\${param:alarmTopicArn, ''}`, { Ref: 'AWS::NoValue' }] },
  ticket: {
    'Fn::If': [
      'NotifyTickets',
      `\${param:ticketTopicArn, ''}`,
      { 'Fn::If': ['NotifyAlarms', `\${param:alarmTopicArn, ''}`, { Ref: 'AWS::NoValue' }] },
    ],
  },
};

const resource = (id: string, { description, urgency, properties }: Alarm) => ({
  Type: 'AWS::CloudWatch::Alarm',
  Condition: urgency === 'page' ? 'PageAlarms' : 'AllAlarms',
  Properties: {
    AlarmDescription: {
      'Fn::If': [
        'LinkRunbook',
        `${description}. What to do: \${param:runbookUrl, ''}#${anchorOf(id)}`,
        `${description}. What to do: docs/operations.md#${anchorOf(id)} in the source of Holdfast. The parameter runbookUrl makes this a link`,
      ],
    },
    ...PERIODS[urgency],
    Threshold: 0,
    ComparisonOperator: 'GreaterThanThreshold',
    TreatMissingData: 'notBreaching',
    AlarmActions: [ACTIONS[urgency]],
    ...properties,
  },
});

type OneMetric = [namespace: string, name: string, periodSeconds?: number | string, statistic?: string];

const seriesOf = (
  id: string,
  [namespace, name, period = 300, statistic = 'Sum']: OneMetric,
  dimensions: Dimensions,
) => ({
  Id: id,
  ReturnData: false,
  MetricStat: {
    Period: period,
    Stat: statistic,
    Metric: { Namespace: namespace, MetricName: name, Dimensions: dimensionList(dimensions) },
  },
});

const dimensionList = (dimensions: Dimensions) => Object.entries(dimensions).map(([Name, Value]) => ({ Name, Value }));
const lambda = (name: string) => ({ FunctionName: { Ref: lambdaId(name) } });
