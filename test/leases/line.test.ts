import { testLine } from '../line/suite.ts';
import { leaseLine } from '../line/world.ts';

await testLine(leaseLine);
