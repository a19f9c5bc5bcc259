import { testLine } from './suite.ts';

await testLine('permit');
