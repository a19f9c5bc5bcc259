import { lateWrites } from '../line/late.ts';
import { leaseLine } from '../line/world.ts';

await lateWrites(leaseLine);
