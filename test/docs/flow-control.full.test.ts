import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { bench, blocks, guideWorld } from '../support/programs/guides.ts';
import { until } from '../support/time/until.ts';

const { holdfast, shell, shownBy, program, read, waiting } = await guideWorld();
const PAGE = await readFile('docs/flow-control.md', 'utf8');

/** The commands of a section, and the work that they start. */
async function scene(heading: string, file: string) {
  const [code = ''] = blocks(PAGE, heading, 'sh');
  const work = bench();
  await program(file, work);
  return { code, work };
}

it('the command with a limit in docs/flow-control.md runs two at once', async () => {
  const { code, work } = await scene('At most N at once', 'render.sh');
  const runs = Array.from({ length: 5 }, () => shell(code));
  for (const begun of [2, 4, 5]) {
    await until(() => work.begun.length).toBe(begun);
    await waiting('render', 5 - begun);
    work.finishAll();
  }
  await Promise.all(runs);
});

it('the command with a rate in docs/flow-control.md starts at the reserved start', async () => {
  const { code, work } = await scene('At most N starts in a period', 'ask.sh');
  const run = shell(code);
  await until(() => work.atWork.length).toBe(1);
  expect(await holdfast.readRates({ key: 'vendor' })).toMatchObject({ rates: [{ limit: 12, per: '1m' }] });
  work.finishAll();
  await run;
});

it('the command with a slot in docs/flow-control.md runs once for five requests', async () => {
  const { code, work } = await scene('Once', 'backup.sh');
  const runs = Array.from({ length: 5 }, () => shownBy(code));
  await until(() => work.atWork.length).toBe(1);
  work.finishAll();
  const printed = (await Promise.all(runs)).map((lines) => lines.at(-1));
  expect(printed.filter((line) => line?.startsWith('holdfast: backup is done for '))).toHaveLength(4);
  expect(work.begun).toHaveLength(1);
});

it('the command without a wait in docs/flow-control.md skips its work', async () => {
  const { code, work } = await scene('Or not at all', 'sync.sh');
  const run = shell(code);
  await until(() => work.atWork.length).toBe(1);
  await shell(code);
  expect(work.begun).toHaveLength(1);
  work.finishAll();
  await run;
  expect((await read('sync')).state).toBe('released');
});

it('the command with replace in docs/flow-control.md leaves only the newest in line', async () => {
  const { code, work } = await scene('Only the newest', 'build.sh');
  const run = () => shell(`${code.trim()} || echo "exit $?"`);
  const first = run();
  await until(() => work.atWork.length).toBe(1);
  const second = run();
  await waiting('preview/12', 1);
  const third = run();
  expect(await second).toBe('exit 75\n');
  work.finishAll();
  await until(() => work.begun.length).toBe(2);
  work.finishAll();
  expect([await first, await third]).toEqual(['', '']);
});

it('the commands for a cap in docs/flow-control.md pause a key and lift the pause', async () => {
  const { work } = await scene('At most N at once', 'render.sh');
  const [less = '', pause = '', lift = ''] = (blocks(PAGE, 'Less for now, or nothing', 'sh')[0] ?? '').split('\n');
  const [run = ''] = blocks(PAGE, 'At most N at once', 'sh');
  await shell(less);
  const first = shell(run);
  await until(() => work.atWork.length).toBe(1);
  const second = shell(run);
  await waiting('render', 1);
  await shell(pause);
  expect(await read('render')).toMatchObject({ cap: { limit: 0, reason: 'the disk is full' } });
  work.finishAll();
  await first;
  expect(await read('render')).toMatchObject({ used: 0, waiting: 1 });
  await shell(lift);
  await until(() => work.begun.length).toBe(2);
  work.finishAll();
  await second;
});

it('the commands of docs/flow-control.md move the last request to the front', async () => {
  const { work } = await scene('At most N at once', 'render.sh');
  const [limited = ''] = blocks(PAGE, 'At most N at once', 'sh');
  const [queue = '', next = ''] = (blocks(PAGE, 'This one next', 'sh')[0] ?? '').split('\n');
  const run = (holder: string) => shell(limited.replace(' -- ', ` --holder ${holder} -- `));
  const before = await holdfast.acquire('render', { limit: 2, weight: 2 });
  const runs: Promise<string>[] = [];
  for (const [at, holder] of ['first', 'second', 'third'].entries()) {
    runs.push(run(holder));
    await waiting('render', at + 1);
  }
  const ticket = /third.* (\S+)$/m.exec(await shell(queue))?.[1] ?? '';
  await shell(next.replace('TICKET', ticket));
  await before.release();
  await until(() => work.atWork.length).toBe(2);
  expect((await read('render')).holders?.map(({ holder }) => holder).sort()).toEqual(['first', 'third']);
  work.finishAll();
  await until(() => work.begun.length).toBe(3);
  work.finishAll();
  await Promise.all(runs);
});
