import { lateWrites } from '../line/late.ts';
import { permitLine } from '../line/world.ts';

await lateWrites(permitLine);
