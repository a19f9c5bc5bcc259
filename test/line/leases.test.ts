import { testLine } from './suite.ts';

await testLine('lease');
