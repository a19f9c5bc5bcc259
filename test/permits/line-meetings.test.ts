import { meetings } from '../line/meetings.ts';
import { permitLine } from '../line/world.ts';

await meetings(permitLine);
