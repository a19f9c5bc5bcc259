import { testLine } from '../line/suite.ts';
import { isFull } from '../support/time/rounds.ts';

await testLine('permit', isFull);
