import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';

const run = promisify(execFile);

/** Fields whose values are others in every run. */
const VARIES = [
  ...['acquiredAt', 'expiresAt', 'remainingMs', 'retryAfterMs', 'updatedAt', 'traceId'],
  ...['fence', 'leaseId', 'version', 'uploadId', 'url'],
  ...['reportId', 'startedAt', 'finishedAt', 'location', 'scanned', 'readUnits'],
  ...['expiredAt', 'ageSeconds', 'oldestAgeSeconds', 'N'],
];

/**
 * Runs the console blocks of a document in their order, as they are written, and compares their answers with the
 * written ones. What varies from run to run is compared by its type; where a later command names such a value, it is given
 * the one of this run.
 * @param url where the API listens that the document has at port 3000
 * @param files of the working directory that commands may read
 */
export async function runExamples(markdown: string, url: string, files: string[] = []): Promise<number> {
  const blocks = [...markdown.matchAll(/```console\n\$ (.*)\n(?:(.*)\n)?```/g)];
  const ofThisRun = new Map([['http://127.0.0.1:3000', url]]);
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-examples-'));
  for (const file of files) await run('cp', [file, folder]);
  for (const [, written = '', answer = ''] of blocks) {
    // The longest first: an upload's URL holds its id.
    const values = [...ofThisRun].sort(([a], [b]) => b.length - a.length);
    const command = values.reduce((text, [there, here]) => text.replaceAll(there, here), written);
    const { stdout } = await run('bash', ['-c', command], { cwd: folder });
    expect(shape(stdout), written).toEqual(shape(answer));
    noteValues(parse(answer), parse(stdout), ofThisRun);
  }
  await rm(folder, { recursive: true });
  return blocks.length;
}

const parse = (text: string): Record<string, unknown> => (text.trim() ? JSON.parse(text) : {});

const shape = (text: string): unknown =>
  JSON.parse(JSON.stringify(parse(text)), (name, value) =>
    VARIES.includes(name) && value !== null && typeof value !== 'object' ? typeof value : value,
  );

function noteValues(written: Record<string, unknown>, given: Record<string, unknown>, values: Map<string, string>) {
  for (const name of VARIES)
    if (typeof written[name] === 'string' && typeof given[name] === 'string') values.set(written[name], given[name]);
}
