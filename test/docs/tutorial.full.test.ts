import { spawn } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli } = await cliWorld();
const tutorial = await readFile('docs/tutorial.md', 'utf8');

const SEPARATOR = '--- answer of the next command ---';

/** Each command with what the page shows below the command. */
const examples = [...tutorial.matchAll(/^```console\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) =>
  block
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const end = part.indexOf('\n');
      return { command: part.slice(0, end), answer: part.slice(end + 1) };
    }),
);

/** Times, durations and fences differ in every run, and so do the widths of columns. */
const shape = (answer: string) =>
  answer
    // The shell prints that the job was killed, at some moment.
    .replace(/^bash: line .*\n/gm, '')
    .trim()
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\b\d+s\b/g, 'SECONDS')
    .replace(/\b\d{6,}\b/g, 'FENCE')
    .replace(/ +/g, ' ');

/** A folder as the reader has it: the command on the path, the client beside the program. */
async function readersFolder(): Promise<string> {
  const [bin, client] = [join(cli.folder, 'bin'), join(cli.folder, 'node_modules', 'holdfast-client')];
  for (const folder of [bin, client]) await mkdir(folder, { recursive: true });
  await symlink(cli.file, join(bin, 'holdfast'));
  await symlink(resolve('clients/typescript/src'), join(client, 'src'));
  await writeFile(join(client, 'package.json'), '{"type":"module","exports":"./src/index.ts"}');
  const [, program = ''] = /^```js\n([\s\S]*?)^```/m.exec(tutorial) ?? [];
  await writeFile(join(cli.folder, 'report.mjs'), program);
  return bin;
}

it('each command of docs/tutorial.md gives the answer that the page shows', { timeout: 120_000 }, async () => {
  const bin = await readersFolder();
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, HOLDFAST_ENDPOINT: api.url };
  const shell = spawn('bash', ['--noprofile', '--norc'], { cwd: cli.folder, env, stdio: ['pipe', 'pipe', 'inherit'] });
  const script = examples.map(({ command }) => `keep echo '${SEPARATOR}'\n${command}\n`).join('');
  const kept = 'keep() { local status=$?; "$@"; return $status; }';
  shell.stdin.end(`exec 2>&1\n${kept}\n${script}`);
  const [, ...answers] = (await text(shell.stdout)).split(`${SEPARATOR}\n`);
  expect(answers.length).toBeGreaterThan(12);
  expect(examples.map(({ command }, at) => [command, shape(answers[at] ?? '')])).toEqual(
    examples.map(({ command, answer }) => [command, shape(answer)]),
  );
});
