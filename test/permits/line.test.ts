import { testLine } from '../line/suite.ts';
import { permitLine } from '../line/world.ts';

await testLine(permitLine);
