import { testLine } from '../line/suite.ts';

await testLine('permit');
