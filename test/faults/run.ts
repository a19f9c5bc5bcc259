import { parseArgs } from 'node:util';
import { startStores, faultyService } from './service.ts';
import { noFaults } from './faults.ts';
import { table } from './history.ts';
import { planWorld, play } from './world.ts';

const { values } = parseArgs({ options: { seed: { type: 'string' }, histories: { type: 'string' }, print: { type: 'boolean' } } });
const stores = await startStores();
const service = await faultyService();
const counts = noFaults();
const t0 = Date.now();
let ops = 0;
const base = Number(values.seed ?? 1);
for (let i = 0; i < Number(values.histories ?? 1); i++) {
  const plan = planWorld(base + i);
  const h = await play(plan, service, counts);
  ops += h.entries.length;
  if (values.print) console.log(table(h.entries));
  if (h.violations.length) {
    console.log('seed', base + i, plan.facts, h.violations.map((v) => [v.promise, v.detail, v.entries.map((e) => e.id)]));
    console.log(table(h.entries, new Set(h.violations.flatMap((v) => v.entries.map((e) => e.id)))));
    break;
  }
}
console.log(counts, ops, Date.now() - t0);
await stores.stop();
