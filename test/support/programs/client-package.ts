import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundle } from '../../../clients/typescript/bundle.ts';

/** A folder in which `import 'holdfast-client'` finds the built package. */
export async function folderWithClient(): Promise<{ folder: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-client-'));
  const installed = join(folder, 'node_modules/holdfast-client');
  await mkdir(installed, { recursive: true });
  await cp('clients/typescript/package.json', join(installed, 'package.json'));
  await bundle(join(installed, 'dist'));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}
