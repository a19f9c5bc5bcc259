import { meetings } from '../line/meetings.ts';
import { leaseLine } from '../line/world.ts';

await meetings(leaseLine);
