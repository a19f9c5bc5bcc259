import { duplicateCalls } from '../line/requests.ts';
import { leaseLine } from '../line/world.ts';

await duplicateCalls(leaseLine);
