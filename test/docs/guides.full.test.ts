import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { onceHandler, onceRecords } from '../../clients/typescript/src/handlers.ts';
import { statesWorld } from '../support/emulators/states.ts';
import { type Bench, bench, blocks, guideWorld } from '../support/programs/guides.ts';
import { exclusionWorld } from '../support/stack/exclusion.ts';
import { until } from '../support/time/until.ts';

const { cli, holdfast, shell, shownBy, program, typescript, read, waiting } = await guideWorld();
const PERMITS = await readFile('docs/permits.md', 'utf8');
const ONCE = await readFile('docs/once.md', 'utf8');
await writeFile(join(cli.folder, 'backup.sh'), '#!/bin/sh\necho "backs up $HOLDFAST_SLOT"\n', { mode: 0o755 });

describe('docs/permits.md: five at once', () => {
  /** Five of six work at once, and the sixth when one of them is done. */
  async function playSix(work: Bench, run: () => Promise<unknown>): Promise<void> {
    const runs = Array.from({ length: 6 }, run);
    await until(() => work.atWork.length).toBe(5);
    await waiting('render', 1);
    work.atWork[0]?.finish();
    await until(() => work.begun.length).toBe(6);
    work.finishAll();
    await Promise.all(runs);
    expect((await read('render')).used).toBe(0);
  }

  it('the example five at once of docs/permits.md runs with curl', async () => {
    const [code = ''] = blocks(PERMITS, 'Five at once', 'sh');
    const [grant, extended, released] = (await shell(code))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(grant).toMatchObject({ key: 'render', mode: 'shared', limit: 5, weight: 1, used: 1 });
    expect(extended).toMatchObject({ key: 'render', leaseId: grant.leaseId, fence: grant.fence });
    expect(released).toEqual({ key: 'render', released: true });
  });

  it('the example five at once of docs/permits.md runs with the command', async () => {
    const [, code = ''] = blocks(PERMITS, 'Five at once', 'sh');
    const work = bench();
    await program('render.sh', work);
    await playSix(work, () => shell(code));
  });

  it('the example five at once of docs/permits.md runs with the client', async () => {
    const [code = ''] = blocks(PERMITS, 'Five at once', 'ts');
    const work = bench();
    await playSix(work, () => typescript(code, { render: work.job('render') }));
  });

  it('the example five at once of docs/permits.md runs with the wrapper', async () => {
    const [code = ''] = blocks(PERMITS, 'Five at once', 'json');
    const world = await exclusionWorld((handlers) => statesWorld({ handlers, secondMs: 5, limitSecondMs: 1000 }));
    try {
      const input = JSON.parse(code.replace(/\$\{TargetStateMachineArn\}/, world.target));
      const arns: string[] = [];
      for (let no = 0; no < 6; no++) arns.push(await world.states.start(world.exclusive, input));
      await until(() => world.running.length).toBe(5);
      await until(async () => (await world.readKey('render')).waiting).toBe(1);
      expect(world.running[0]?.input).toEqual({ frame: 7 });
      world.running[0]?.finish({});
      await world.atWorkNo(5);
      for (const { finish } of world.running) finish({});
      for (const arn of arns) expect((await world.states.ended(arn)).status).toBe('SUCCEEDED');
      expect(world.peak.atWork).toBe(5);
    } finally {
      await world.states.stop();
    }
  });
});

describe('docs/permits.md: weights', () => {
  it.each(['sh', 'ts'])('the example of GPUs by weight in docs/permits.md runs in %s', async (language) => {
    const [code = ''] = blocks(PERMITS, 'Weights', language);
    const work = bench();
    await program('train.sh', work);
    const run = () => (language === 'sh' ? shell(code) : typescript(code, { train: work.job('train') }));
    const runs = [run(), run(), run()];
    await until(() => work.atWork.length).toBe(2);
    await waiting('gpus', 1);
    expect(await read('gpus')).toMatchObject({ used: 8, limit: 8 });
    work.atWork[0]?.finish();
    await until(() => work.begun.length).toBe(3);
    work.finishAll();
    await Promise.all(runs);
    expect((await read('gpus')).used).toBe(0);
  });
});

describe('docs/permits.md: a nightly job against readers', () => {
  it.each(['sh', 'ts'])(
    'the example of a nightly job against readers in docs/permits.md runs in %s',
    async (language) => {
      const [query = '', load = ''] = (blocks(PERMITS, 'Readers and writers', language)[0] ?? '').trim().split('\n');
      const work = bench();
      await Promise.all([program('query.sh', work), program('nightly-load.sh', work)]);
      const functions = { query: work.job('query.sh'), load: work.job('nightly-load.sh') };
      const run = (code: string) => (language === 'sh' ? shell(code) : typescript(code, functions));
      const runs = [run(query), run(query)];
      await until(() => work.atWork.length).toBe(2);
      runs.push(run(load));
      await waiting('catalog', 1);
      runs.push(run(query));
      await waiting('catalog', 2);
      expect(work.begun).toEqual(['query.sh', 'query.sh']);
      work.finishAll();
      await until(() => work.begun.length).toBe(3);
      expect(work.begun.at(-1)).toBe('nightly-load.sh');
      expect((await read('catalog')).holders).toMatchObject([{ mode: 'exclusive' }]);
      work.finishAll();
      await until(() => work.begun.length).toBe(4);
      work.finishAll();
      await Promise.all(runs);
      expect((await read('catalog')).used).toBe(0);
    },
  );
});

it('docs/permits.md shows the holders of a key', async () => {
  const lease = await holdfast.acquire('render', { limit: 5 });
  const [list = ''] = blocks(PERMITS, 'Who is in', 'sh');
  expect(JSON.parse(await shell(list))).toMatchObject({ key: 'render', used: 1, holders: [{ fence: lease.fence }] });
  await lease.release();
});

describe('docs/permits.md: how large', () => {
  it('docs/permits.md shows as many calls as its formula gives', () => {
    const rows = [...PERMITS.matchAll(/^\| (\d+) \| (\d+) s \| (\d+) s \| ([\d.]+) \|/gm)].map((row) =>
      row.slice(1).map(Number),
    );
    expect(rows.length).toBeGreaterThan(3);
    for (const [holders = 0, work = 0, ttl = 0, calls = 0] of rows)
      expect(Math.abs(holders * (2 / work + 3 / ttl) - calls)).toBeLessThan(0.5);
  });
});

const today = () => new Date().toISOString().slice(0, 10);
const context = { getRemainingTimeInMillis: () => 30_000 };

describe('docs/once.md', () => {
  it('docs/once.md begins with commands whose answers it shows', async () => {
    const [session = ''] = blocks(ONCE, undefined, 'console');
    const commands = [...session.matchAll(/^\$ (.*)$/gm)].map(([, command]) => command).join('\n');
    const [first, second] = await shownBy(commands);
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

  it('docs/once.md charges twice under a lease, and one time with once', async () => {
    const [lease = '', once = ''] = blocks(ONCE, 'What goes wrong with a lease alone', 'ts');
    let charges = 0;
    const charge = async () => `receipt ${++charges}`;
    await typescript(lease, { charge });
    expect(charges).toBe(2);
    const answers = (await typescript(once, { charge }, '\nreturn answers;')) as { outcome: string; result: string }[];
    expect(charges).toBe(3);
    expect(answers.map(({ result }) => result)).toEqual(['receipt 3', 'receipt 3']);
    expect(answers.map(({ outcome }) => outcome).sort()).toEqual(['done', 'ran']);
  });

  it('docs/once.md runs a backup with the client', async () => {
    const [code = ''] = blocks(ONCE, 'In the client', 'ts');
    const printed: unknown[][] = [];
    const console = { log: (...words: unknown[]) => printed.push(words) };
    await holdfast.once('backup', { slot: '0000' }, () => {}); // an earlier day
    const { fence } = (await holdfast.readOnce({ key: 'backup' })) as { fence: number };
    await holdfast.forget({ key: 'backup', fence });
    const backup = async (signal: AbortSignal, own: number) => [signal.aborted, own > fence];
    await typescript(code, { backup, console });
    expect(printed).toEqual([['ran', [false, true], 'the other']]);
    await typescript(code, { backup, console });
    expect(printed[1]).toEqual(['done', [false, true], 'the other']);
  });

  it('docs/once.md charges once for a repeated event and a repeated SQS message', async () => {
    const [event = '', records = ''] = blocks(ONCE, 'In a Lambda handler', 'ts');
    let charges = 0;
    const charge = async () => ({ receipt: ++charges });
    const order = (await typescript(event, { charge, onceHandler })) as (
      event: object,
      own: object,
    ) => Promise<unknown>;
    for (let delivery = 0; delivery < 2; delivery++) expect(await order({ id: '7' }, context)).toEqual({ receipt: 1 });
    const queue = (await typescript(records, { charge, onceRecords })) as typeof order;
    const record = {
      ...{ messageId: 'm', receiptHandle: 'r', body: 'order', attributes: {} },
      eventSourceARN: 'arn:aws:sqs:us-east-1:000000000000:orders',
    };
    for (let delivery = 0; delivery < 2; delivery++)
      expect(await queue({ Records: [record] }, context)).toEqual({ batchItemFailures: [] });
    expect(charges).toBe(2);
  });

  it('the commands of docs/once.md run a backup once, list it and forget it', async () => {
    const { fence } = (await holdfast.readOnce({ key: 'backup' })) as { fence: number | null };
    if (fence !== null) await holdfast.forget({ key: 'backup', fence });
    const [code = ''] = blocks(ONCE, 'In a shell', 'sh');
    const lines = await shownBy(code);
    expect(lines[0]).toBe(`backs up ${today()}`);
    expect(lines[1]).toMatch(new RegExp(`^holdfast: backup is done for ${today()}, by `));
    expect(lines.some((line) => line.startsWith('backup ') && line.includes(today()))).toBe(true);
    expect(lines.at(-1)).toBe(`slot ${today()} of backup is forgotten: the next caller does the work again`);
  });

  it('docs/once.md runs each step of a durable function once, even if interrupted', async () => {
    const [code = ''] = blocks(ONCE, 'In a durable function', 'ts');
    type Step = (name: string, run: () => Promise<unknown>) => Promise<unknown>;
    type Context = { step: Step; executionContext: { durableExecutionArn: string } };
    type Handler = (event: object, ctx: Context) => Promise<unknown>;
    const ran: string[] = [];
    const name = 'function:orders:1/durable-execution/order/run';
    const executionContext = { durableExecutionArn: `arn:aws:lambda:us-east-1:000000000000:${name}` };
    const charge = async (id: string) => `receipt of ${id}`;
    const withDurableExecution = (handler: Handler) => handler;
    const handler = (await typescript(code, { charge, withDurableExecution })) as Handler;
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
});
