import { looks } from '../line/looks.ts';
import { permitLine } from '../line/world.ts';

await looks(permitLine);
