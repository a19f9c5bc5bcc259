import { askingAgain } from '../line/asking-again.ts';
import { leaseLine } from '../line/world.ts';

await askingAgain(leaseLine);
