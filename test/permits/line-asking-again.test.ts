import { askingAgain } from '../line/asking-again.ts';
import { permitLine } from '../line/world.ts';

await askingAgain(permitLine);
