import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readService } from '../infrastructure/read.ts';
import { overBudget } from './budget.ts';
import { bundle } from './bundle.ts';
import { licencesText, packagesOf } from './licences.ts';

/** Writes a folder for each function of serverless.yml, such as dist/leases/acquire/index.mjs from functions/leases/acquire.ts. */
const { functions } = await readService();
await rm('dist', { recursive: true, force: true });
await Promise.all(
  functions.map(async ({ source, bundle: folder }) => {
    const packages = await packagesOf((await bundle(source, folder)).keys());
    await writeFile(join(folder, 'LICENSES.txt'), await licencesText(packages));
    // Beside the folder, because the bill of materials of the release needs it, but the zip must not contain it.
    await writeFile(`${folder}.packages.json`, JSON.stringify(packages.map(({ texts: _, ...one }) => one)));
  }),
);

const complaints = await overBudget(functions);
for (const complaint of complaints) console.error(complaint);
process.exitCode = complaints.length === 0 ? 0 : 1;
