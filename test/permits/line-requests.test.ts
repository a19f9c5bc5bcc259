import { duplicateCalls } from '../line/requests.ts';
import { permitLine } from '../line/world.ts';

await duplicateCalls(permitLine);
