import { ARN, type Group } from './kinds.ts';

export const FUNCTIONS: Group = {
  memoryMb: { default: '512', description: 'The memory of each function, in MB.', min: 128, max: 10240 },
  logLevel: {
    default: 'INFO',
    description: 'The log level of the functions.',
    allowed: ['DEBUG', 'INFO', 'WARN', 'ERROR', 'SILENT'],
  },
  logRetentionDays: {
    default: '30',
    description: 'How many days every log group keeps its lines.',
    allowed: '1,3,5,7,14,30,60,90,120,150,180,365,400,545,731,1096,1827,2192,2557,2922,3288,3653'.split(','),
  },
  alarms: {
    default: 'essential',
    description:
      'essential: the alarms that page, because callers are refused or wait. all: also the alarms that can wait for a day. CloudWatch charges $0.10 a month for each metric of an alarm.',
    allowed: ['all', 'essential', 'none'],
  },
  alarmTopicArn: { default: '', description: 'An SNS topic that the alarms notify.', ...ARN('sns') },
  ticketTopicArn: {
    default: '',
    description: 'An SNS topic for the alarms that can wait for a day. Empty: alarmTopicArn.',
    ...ARN('sns'),
  },
  waiterOverdueSeconds: {
    default: '14400',
    description: 'An alarm fires if a task or a call is in line for longer than this many seconds.',
    min: 60,
    max: 31536000,
  },
  events: {
    default: 'DISABLED',
    description:
      'ENABLED: if a task or a call is in line for longer than waiterOverdueSeconds, the default event bus receives an event Lease Waited, and another one after each further period.',
    allowed: ['ENABLED', 'DISABLED'],
  },
  runbookUrl: {
    default: '',
    description:
      'The URL of a copy of docs/operations.md, so that each alarm can link its section. Empty: alarms only name the section.',
    pattern: '^[!-~]{0,200}$',
    constraint: 'must be a URL or a path without spaces, or empty',
  },
};
