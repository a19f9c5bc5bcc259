import { spawn } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, expect } from 'vitest';
import { listen } from '../../../local/listen.ts';
import { until } from '../time/until.ts';
import { cliWorld } from '../worlds/cli-world.ts';

/** The code blocks of a section of a guide in a language. Without a heading, those before the first section. */
export function blocks(guide: string, heading: string | undefined, language: string): string[] {
  const section = heading === undefined ? guide : guide.split(`\n## ${heading}\n`)[1];
  if (section === undefined) throw new Error(`the page has no heading ${heading}`);
  const [own = ''] = section.split('\n## ');
  return [...own.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 'gs'))].map(([, code = '']) => code);
}

/**
 * Runs a block of TypeScript.
 * @param names what the block uses
 * @param last an expression for the result, if it is not the exported handler
 */
export async function runTypeScript(block: string, names: Record<string, unknown>, last = ''): Promise<unknown> {
  const own = block.replace(/^import .*$/gm, '').replace('export const handler =', 'return ');
  const code = stripTypeScriptTypes(`(async () => {${own}${last}})`);
  const run = new Function(...Object.keys(names), `return ${code}()`);
  return run(...Object.values(names));
}

/** Jobs that run until the test ends them. */
export function bench() {
  const atWork: { name: string; finish: () => void }[] = [];
  const begun: string[] = [];
  const job = (name: string) => () =>
    new Promise<void>((resolve) => {
      begun.push(name);
      const own = { name, finish: () => resolve(void atWork.splice(atWork.indexOf(own), 1)) };
      atWork.push(own);
    });
  const finishAll = () => {
    for (const { finish } of [...atWork]) finish();
  };
  return { atWork, begun, job, finishAll };
}

export type Bench = ReturnType<typeof bench>;

/** The world in which a guide's blocks run: the service, the command on the path of a shell, and the client. */
export async function guideWorld() {
  const { api, cli, holdfast } = await cliWorld();
  const bin = join(cli.folder, 'bin');
  await mkdir(bin);
  await symlink(cli.file, join(bin, 'holdfast'));

  /** Runs a block as it is written, with our service in place of the local one. @param more variables of its environment */
  async function shell(script: string, more: Record<string, string> = {}): Promise<string> {
    const env = {
      ...process.env,
      PATH: `${bin}:${process.env.PATH}`,
      HOLDFAST_ENDPOINT: api.url,
      HOME: cli.folder,
      USER: 'ann',
      ...more,
    };
    const here = script.replaceAll('http://127.0.0.1:3000', api.url);
    const child = spawn('bash', ['-euc', here], { cwd: cli.folder, env, stdio: ['ignore', 'pipe', 'ignore'] });
    const [code, stdout] = await Promise.all([
      new Promise((resolve) => child.once('exit', resolve)),
      text(child.stdout as NodeJS.ReadableStream),
    ]);
    expect(code).toBe(0);
    return stdout;
  }

  const controls: { stop(): Promise<void> }[] = [];
  afterAll(() => Promise.all(controls.map(({ stop }) => stop())));

  /** A program for the shell that works until the test lets it end. */
  async function program(file: string, { job }: Bench): Promise<void> {
    const work = job(file);
    const control = await listen((_, response) => work().then(() => response.end()));
    controls.push(control);
    await writeFile(join(cli.folder, file), `#!/bin/sh\nexec curl -s ${control.url}\n`, { mode: 0o755 });
  }

  const typescript = (block: string, names: Record<string, unknown>, last?: string) =>
    runTypeScript(block, { holdfast, ...names }, last);
  const read = (key: string) => holdfast.readLease(key);
  return {
    ...{ api, cli, holdfast, shell, program, typescript, read },
    /** The lines of both streams that commands print. */
    shownBy: async (script: string) => (await shell(`exec 2>&1\n${script}`)).trim().split('\n'),
    /** Waits until `count` waiters are in the line of a key. */
    waiting: (key: string, count: number) => until(async () => (await read(key)).waiting).toBe(count),
  };
}
