import { callers } from '../line/callers.ts';
import { permitLine } from '../line/world.ts';

await callers(permitLine);
