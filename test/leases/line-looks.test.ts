import { looks } from '../line/looks.ts';
import { leaseLine } from '../line/world.ts';

await looks(leaseLine);
