import { rm } from 'node:fs/promises';
import { readService } from '../infrastructure/read.ts';
import { overBudget } from './budget.ts';
import { bundle } from './bundle.ts';

/** One folder for each function of serverless.yml: dist/leases/acquire/index.mjs from functions/leases/acquire.ts. */
const { functions } = await readService();
await rm('dist', { recursive: true, force: true });
await Promise.all(functions.map(({ source, bundle: folder }) => bundle(source, folder)));

const complaints = await overBudget(functions);
for (const complaint of complaints) console.error(complaint);
process.exitCode = complaints.length === 0 ? 0 : 1;
