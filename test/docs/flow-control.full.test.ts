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
