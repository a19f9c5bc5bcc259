import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { handlersIn } from '../../local/handler-files.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-durable-'));
  for (const name of ['order.ts', 'other/order.js', 'my.job.ts', `${'n'.repeat(65)}.ts`, 'Job_2-b.ts']) {
    await mkdir(join(folder, name, '..'), { recursive: true });
    await writeFile(join(folder, name), 'export const handler = async () => 7;');
  }
});
afterAll(() => rm(folder, { recursive: true }));

const given = (...names: string[]) => names.map((name) => join(folder, name));

it('npm start -- --durable runs functions under the names of their files', async () => {
  const handlers = handlersIn('--durable', given('order.ts', 'Job_2-b.ts'));
  expect(Object.keys(handlers)).toEqual(['order', 'Job_2-b']);
  expect(await (await handlers['Job_2-b']?.())?.({}, {} as never)).toBe(7);
});

it.each([
  ['does not exist', ['order.ts', 'missing.ts'], 'missing.ts: there is no such file'],
  ['is a folder', ['other'], 'other: there is no such file'],
  ['has a name that Lambda does not allow', ['my.job.ts'], 'my.job.ts: the name may have up to 64 letters'],
  ['has a name that is too long', [`${'n'.repeat(65)}.ts`], '.ts: the name may have up to 64 letters'],
  ['has the name of another file', ['order.ts', 'other/order.js'], 'order.ts has the same name'],
])('npm start -- --durable refuses a file that %s, and names the file', (_, names, problem) => {
  const files = given(...names);
  expect(() => handlersIn('--durable', files)).toThrow(problem);
  expect(() => handlersIn('--durable', files)).toThrow(`--durable ${files.at(-1)}: `);
});

it('npm start -- --durable ends before anything starts if it refuses a file', async () => {
  const [missing = ''] = given('missing.ts');
  const run = await new Promise((resolve) =>
    execFile(process.execPath, ['local/start.ts', '--memory', '--durable', missing], (error, stdout, stderr) =>
      resolve([error?.code, stdout, stderr]),
    ),
  );
  expect(run).toEqual([1, '', `npm start: --durable ${missing}: there is no such file\n`]);
});
