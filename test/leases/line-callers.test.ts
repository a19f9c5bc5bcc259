import { callers } from '../line/callers.ts';
import { leaseLine } from '../line/world.ts';

await callers(leaseLine);
