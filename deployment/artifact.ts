import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { Refusal } from './failure.ts';

/** A release that `npm run release` has written. */
export interface Artifact {
  template: CloudFormationTemplate;
  templateText: string;
  /** The content of each zip, by its file name. */
  zips: Map<string, Buffer>;
}

/** @throws Refusal if the folder is not a release, or a file has changed since the release */
export async function readArtifact(folder: string): Promise<Artifact> {
  const sums = await readFile(join(folder, 'SHA256SUMS'), 'utf8').catch(() => {
    throw new Refusal(`${folder} is not a release of Holdfast: it has no SHA256SUMS`);
  });
  for (const line of sums.trim().split('\n')) {
    const [sum, file = ''] = line.split('  ');
    const content = await readFile(join(folder, file)).catch(() => undefined);
    const actual = content && createHash('sha256').update(content).digest('hex');
    if (actual !== sum)
      throw new Refusal(`${join(folder, file)} is ${content ? 'not the file that was released' : 'missing'}`);
  }
  const templateText = await readFile(join(folder, 'template.json'), 'utf8');
  const names = await readdir(join(folder, 'functions'));
  const zips = await Promise.all(
    names.map(async (name) => [name, await readFile(join(folder, 'functions', name))] as const),
  );
  return { template: JSON.parse(templateText), templateText, zips: new Map(zips) };
}
