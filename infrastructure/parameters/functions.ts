import { ARN, type Group } from './kinds.ts';

export const FUNCTIONS: Group = {
  memoryMb: { default: '512', description: 'Memory of each function.', least: 128, most: 10240 },
  logLevel: {
    default: 'INFO',
    description: 'Log level of the functions.',
    allowed: ['DEBUG', 'INFO', 'WARN', 'ERROR', 'SILENT'],
  },
  logRetentionDays: {
    default: '30',
    description: 'Retention of every log group.',
    allowed: '1,3,5,7,14,30,60,90,120,150,180,365,400,545,731,1096,1827,2192,2557,2922,3288,3653'.split(','),
  },
  alarmTopicArn: { default: '', description: 'An SNS topic that the alarms notify.', ...ARN('sns') },
};
