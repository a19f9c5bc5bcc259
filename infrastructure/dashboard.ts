import { ERRORS } from '../shared/errors.ts';
import { KINDS } from '../shared/expiry/kinds.ts';
import { type CloudFormationTemplate, type Json, sub, type TemplateResource } from './cloudformation.ts';
import { RESOURCE_NAMES } from './resource-names.ts';

/** A metric as CloudWatch wants it: namespace, name, then name and value of each dimension, and how to draw it. */
type Line = (string | Drawing)[];
type Drawing = Record<string, unknown>;

interface Widget {
  title: string;
  lines: Line[];
  /** The statistic of lines that do not name their own. */
  stat: 'Sum' | 'Maximum' | 'SampleCount' | 'p50';
  periodSeconds?: number;
}

/** CloudWatch has 24 columns, so three widgets fit in a row. */
const [WIDTH, HEIGHT, IN_ROW] = [8, 6, 3];

/** A dashboard of the whole deployment: what callers and tasks experience, and the likely causes. */
export function dashboard(template: CloudFormationTemplate): TemplateResource {
  const functions = Object.values(template.Resources).flatMap(({ Type, Properties = {} }) =>
    Type === 'AWS::Lambda::Function' ? [functionName(Properties.FunctionName)] : [],
  );
  const widgets = [...leases(), ...service(), ...limits(functions)].map((widget, index) => ({
    type: 'metric',
    ...{ x: (index % IN_ROW) * WIDTH, y: Math.floor(index / IN_ROW) * HEIGHT, width: WIDTH, height: HEIGHT },
    properties: drawn(widget),
  }));
  const tables = Object.fromEntries(
    TABLES.map(({ parameter }) => [`${parameter}Name`, RESOURCE_NAMES[parameter] ?? null]),
  );
  return {
    Type: 'AWS::CloudWatch::Dashboard',
    Condition: 'HasDashboard',
    Properties: {
      DashboardName: sub(`holdfast-\${stage}`),
      DashboardBody: { 'Fn::Sub': [JSON.stringify({ widgets }), tables] },
    },
  };
}

const drawn = ({ title, lines, stat, periodSeconds = 60 }: Widget) => ({
  ...{ title, stat, period: periodSeconds, view: 'timeSeries', stacked: false, region: `\${AWS::Region}` },
  metrics: lines,
});

const SERVICE = ['service', `holdfast-\${stage}`];
const own = (name: string, how: Drawing = {}): Line => ['Holdfast', name, ...SERVICE, { label: name, ...how }];
const functionLine = (name: string, one: string, how: Drawing = {}): Line => [
  ...['Holdfast', name, ...SERVICE, 'function', one],
  { label: name, ...how },
];

function leases(): Widget[] {
  const percentiles = (line: (how: Drawing) => Line, of: string) =>
    ['p50', 'p99', 'Maximum'].map((stat) => line({ stat, label: `${of}, ${stat}` }));
  return [
    {
      title: 'Grants',
      stat: 'SampleCount',
      lines: [
        functionLine('WaitedMs', 'acquire', { label: 'to callers' }),
        own('ParkedMs', { label: 'to parked tasks' }),
        functionLine('Success', 'release', { label: 'releases' }),
      ],
    },
    {
      title: 'Waiting time (ms)',
      stat: 'p50',
      lines: [
        ...percentiles((how) => functionLine('WaitedMs', 'acquire', how), 'callers'),
        ...percentiles((how) => own('ParkedMs', { yAxis: 'right', ...how }), 'tasks'),
        ...percentiles((how) => own('RateWaitMs', { yAxis: 'right', ...how }), 'rates'),
      ],
    },
    { title: 'Hand-off (ms)', stat: 'p50', lines: percentiles((how) => own('HandOffMs', how), 'release to grant') },
    {
      title: 'Parked',
      stat: 'Sum',
      lines: [
        own('Parked', { label: 'tasks parked' }),
        own('KeysInLine', { stat: 'Maximum', label: 'keys with a line' }),
        own('RepairsCutShort', { label: 'repairs cut short' }),
      ],
    },
    {
      title: 'Age of the oldest waiter (s)',
      stat: 'Maximum',
      lines: [own('OldestTicketAgeSeconds', { label: 'oldest waiter' })],
    },
    {
      title: 'Expired records',
      stat: 'Maximum',
      periodSeconds: 900, // a report takes minutes
      lines: KINDS.map((kind) => ['Holdfast', 'ExpiredRecords', ...SERVICE, 'kind', kind, { label: kind }]),
    },
  ];
}

function service(): Widget[] {
  const codes = Object.entries(ERRORS);
  const statusLines = (isMet: (status: number) => boolean) =>
    codes.filter(([, { status }]) => isMet(status)).map(([code]) => own(code));
  const apiLine = (name: string, how: Drawing = {}): Line => ['AWS/ApiGateway', name, 'ApiId', `\${HttpApi}`, how];
  return [
    { title: 'Refusals by code', stat: 'Sum', lines: statusLines((status) => status < 500) },
    { title: 'Faults', stat: 'Sum', lines: [own('Faults'), ...statusLines((status) => status >= 500)] },
    {
      title: 'API requests and latency (ms)',
      stat: 'Sum',
      lines: [
        ...['Count', '4xx', '5xx'].map((name) => apiLine(name)),
        ...['p50', 'p99'].map((stat) => apiLine('Latency', { stat, yAxis: 'right', label: `latency, ${stat}` })),
      ],
    },
  ];
}

const TABLES = [
  { parameter: 'leasesTable', index: 'by-execution' },
  { parameter: 'waitersTable', index: 'by-execution' },
  { parameter: 'commitsTable', index: undefined },
  { parameter: 'nameserviceTable', index: 'gsi1-kind' },
];

function limits(functions: string[]): Widget[] {
  const throttled = ({ parameter, index }: (typeof TABLES)[number]) =>
    [[], ...(index ? [['GlobalSecondaryIndexName', index]] : [])].flatMap((ofIndex) =>
      ['Read', 'Write'].map(
        (kind): Line => [
          ...['AWS/DynamoDB', `${kind}ThrottleEvents`, 'TableName', `\${${parameter}Name}`, ...ofIndex],
          { label: `${parameter.replace('Table', '')} ${ofIndex[1] ?? ''} ${kind}`.replace('  ', ' ') },
        ],
      ),
    );
  const lambda = (name: string, one: string, how: Drawing = {}): Line => [
    ...['AWS/Lambda', name, 'FunctionName', `holdfast-\${stage}-${one}`],
    { label: one, ...how },
  ];
  return [
    { title: 'Throttled functions', stat: 'Sum', lines: functions.map((one) => lambda('Throttles', one)) },
    { title: 'Throttled tables', stat: 'Sum', lines: TABLES.flatMap(throttled) },
    {
      title: 'Environments in use',
      stat: 'Maximum',
      lines: ['acquire', 'heartbeat', 'release'].map((one) => lambda('ConcurrentExecutions', one)),
    },
  ];
}

/** The name of a function in serverless.yml, taken from its deployed name, such as `holdfast-${stage}-acquire`. */
export const functionName = (FunctionName: Json | undefined): string =>
  JSON.stringify(FunctionName).match(/-(\w+)"\}?$/)?.[1] ?? '';
