import { spawn } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { leasedRecords, onceHandler } from '../../client/src/handlers.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();
const guide = await readFile('docs/once.md', 'utf8');

/** The code of a section in a language, block by block; without a heading, of the first lines. */
function blocks(heading: string | undefined, language: string): string[] {
  const section = heading === undefined ? guide : (guide.split(`\n## ${heading}\n`)[1] ?? '');
  const [own = ''] = section.split('\n## ');
  return [...own.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 'gs'))].map(([, code = '']) => code);
}

const BIN = join(cli.folder, 'bin');
await mkdir(BIN);
await symlink(cli.file, join(BIN, 'holdfast'));
await writeFile(join(cli.folder, 'backup.sh'), '#!/bin/sh\necho "backs up $HOLDFAST_SLOT"\n', { mode: 0o755 });

/** Runs commands as they are written, with our service in place of the local one. */
async function shell(script: string): Promise<string[]> {
  const env = { PATH: `${BIN}:${process.env.PATH}`, HOLDFAST_ENDPOINT: api.url, HOME: cli.folder, USER: 'ann' };
  const here = script.replaceAll('http://127.0.0.1:3000', api.url);
  const child = spawn('bash', ['-euc', `exec 2>&1\n${here}`], {
    cwd: cli.folder,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [code, stdout] = await Promise.all([
    new Promise((resolve) => child.once('exit', resolve)),
    text(child.stdout as NodeJS.ReadableStream),
  ]);
  expect(code, stdout).toBe(0);
  return stdout.trim().split('\n');
}

/** Runs a block of TypeScript. @param more what the block uses @param last what is returned, if it is not the exported handler */
async function program(block: string, more: Record<string, unknown>, last = ''): Promise<unknown> {
  const own = block.replace(/^import .*$/gm, '').replace('export const handler =', 'return ');
  const code = stripTypeScriptTypes(`(async () => {${own}${last}})`);
  const names = { holdfast, ...more };
  const run = new Function(...Object.keys(names), `return ${code}()`);
  return run(...Object.values(names));
}

const today = () => new Date().toISOString().slice(0, 10);
const context = { getRemainingTimeInMillis: () => 30_000 };

describe('docs/once.md', () => {
  it('docs/once.md begins with commands whose answers it shows', async () => {
    const [session = ''] = blocks(undefined, 'console');
    const commands = [...session.matchAll(/^\$ (.*)$/gm)].map(([, command]) => command).join('\n');
    const [first, second] = await shell(commands);
    const [, shownFirst, , shownSecond = ''] = session.split('\n');
    expect(first).toBe(shownFirst);
    const pattern = shownSecond
      .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replace('2026-11-26,', `${today()},`)
      .replace('ann@host-2/4711', 'ann@\\S+/\\d+')
      .replace('2026-11-26T02:14:05\\.113Z', '\\S+')
      .replace('4h 5m', '\\w+');
    expect(second).toMatch(new RegExp(`^${pattern}$`));
  });

  it('docs/once.md shows that two deliveries both charge under a lease, and that one charges by once', async () => {
    const [lease = '', once = ''] = blocks('What goes wrong with a lease alone', 'ts');
    let charges = 0;
    const charge = async () => `receipt ${++charges}`;
    await program(lease, { charge });
    expect(charges).toBe(2);
    const answers = (await program(once, { charge }, '\nreturn answers;')) as { outcome: string; result: string }[];
    expect(charges).toBe(3);
    expect(answers.map(({ result }) => result)).toEqual(['receipt 3', 'receipt 3']);
    expect(answers.map(({ outcome }) => outcome).sort()).toEqual(['done', 'ran']);
  });

  it('docs/once.md runs a backup by the client', async () => {
    const [code = ''] = blocks('In the client', 'ts');
    const printed: unknown[][] = [];
    const console = { log: (...words: unknown[]) => printed.push(words) };
    await holdfast.once('backup', { slot: '0000' }, () => {}); // an earlier day
    const { fence } = (await holdfast.readOnce({ key: 'backup' })) as { fence: number };
    await holdfast.forget({ key: 'backup', fence });
    const backup = async (signal: AbortSignal, own: number) => [signal.aborted, own > fence];
    await program(code, { backup, console });
    expect(printed).toEqual([['ran', [false, true], 'the other']]);
    await program(code, { backup, console });
    expect(printed[1]).toEqual(['done', [false, true], 'the other']);
  });

  it('docs/once.md charges once for two deliveries of an event, and of an SQS message', async () => {
    const [event = '', records = ''] = blocks('In a Lambda handler', 'ts');
    let charges = 0;
    const charge = async () => ({ receipt: ++charges });
    const order = (await program(event, { charge, onceHandler })) as (event: object, own: object) => Promise<unknown>;
    for (let delivery = 0; delivery < 2; delivery++) expect(await order({ id: '7' }, context)).toEqual({ receipt: 1 });
    const queue = (await program(records, { charge, leasedRecords })) as typeof order;
    const record = {
      ...{ messageId: 'm', receiptHandle: 'r', body: 'order', attributes: {} },
      eventSourceARN: 'arn:aws:sqs:us-east-1:000000000000:orders',
    };
    for (let delivery = 0; delivery < 2; delivery++)
      expect(await queue({ Records: [record] }, context)).toEqual({ batchItemFailures: [] });
    expect(charges).toBe(2);
  });

  it('docs/once.md has commands that run a backup once, list it and forget it', async () => {
    const { fence } = (await holdfast.readOnce({ key: 'backup' })) as { fence: number | null };
    if (fence !== null) await holdfast.forget({ key: 'backup', fence });
    const [code = ''] = blocks('In a shell', 'sh');
    const lines = await shell(code);
    expect(lines[0]).toBe(`backs up ${today()}`);
    expect(lines[1]).toMatch(new RegExp(`^holdfast: backup is done for ${today()}, by `));
    expect(lines.some((line) => line.startsWith('backup ') && line.includes(today()))).toBe(true);
    expect(lines.at(-1)).toBe(`backup is forgotten for ${today()}: the next caller works again`);
  });

  it('docs/once.md runs each step of a durable function once, also if the function is interrupted after each step', async () => {
    const [code = ''] = blocks('In a durable function', 'ts');
    type Step = (name: string, run: () => Promise<unknown>) => Promise<unknown>;
    type Context = { step: Step; executionContext: { durableExecutionArn: string } };
    type Handler = (event: object, ctx: Context) => Promise<unknown>;
    const ran: string[] = [];
    const name = 'function:orders:1/durable-execution/order/run';
    const executionContext = { durableExecutionArn: `arn:aws:lambda:us-east-1:000000000000:${name}` };
    const charge = async (id: string) => `receipt of ${id}`;
    const withDurableExecution = (handler: Handler) => handler;
    const handler = (await program(code, { charge, withDurableExecution })) as Handler;
    /** An execution that is interrupted after each step that it runs, and then begins again with its log. */
    const execute = async (event: object): Promise<unknown> => {
      const log = new Map<string, string | undefined>();
      for (;;) {
        const ended = await new Promise<{ value: unknown } | undefined>((resolve, reject) => {
          const step: Step = async (name, run) => {
            if (log.has(name)) return JSON.parse(log.get(name) ?? 'null');
            ran.push(name);
            log.set(name, JSON.stringify(await run()));
            resolve(undefined);
            return new Promise(() => {}); // this run of the function is over
          };
          handler(event, { step, executionContext }).then((value) => resolve({ value }), reject);
        });
        if (ended) return ended.value;
      }
    };
    expect(await execute({ id: 'd-1' })).toBe('receipt of d-1');
    expect(ran).toEqual(['request id', 'begin', 'charge', 'complete']);
    ran.length = 0;
    expect(await execute({ id: 'd-1' })).toBe('receipt of d-1');
    expect(ran).toEqual(['request id', 'begin']);
  });

  it('docs/once.md has calls of the API that begin, complete and answer with the result', async () => {
    const [code = ''] = blocks('By the API', 'sh');
    const [run, completed, done] = (await shell(code)).map((line) => JSON.parse(line));
    expect(run).toMatchObject({ outcome: 'run', key: 'report', slot: '2026-11-26', previous: null });
    expect(completed).toMatchObject({ completed: true, repeated: false, slot: '2026-11-26', fence: run.fence });
    expect(done).toMatchObject({ outcome: 'done', doneBy: 'worker-1', result: { files: 7 }, fence: run.fence });
  });
});
