import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { afterAll, describe, expect, it } from 'vitest';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { REGION } from '../../infrastructure/logical-ids.ts';
import { durableFunctions } from '../../shared/aws/durable-functions.ts';
import { ANY_EXECUTION } from '../../shared/locks/executions/allowed.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { durableFunctionsOver, startDouble, type Work } from '../support/emulators/durable-functions.ts';
import { lambdaContext } from '../support/stack/adapters.ts';
import { startApi } from '../support/stack/api.ts';
import { onceWorld } from '../support/worlds/once.ts';

const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'local' };

const functions = await durableFunctionsOver(startDouble, ({ execution, status, endedAt }) =>
  world.handlers.executionEnded({ execution, status, stopDate: endedAt }, lambdaContext()),
);
const world: Awaited<ReturnType<typeof onceWorld>> = await onceWorld({
  clock: systemClock,
  durableFunctions: async () =>
    durableFunctions({ endpoint: functions.endpoint, region: REGION, credentials: CREDENTIALS }),
  executions: { ...ANY_EXECUTION, durableFunctions: '*' },
  clockSkewMs: 0,
});
const api = await startApi(world.handlers);
const holdfast = new Holdfast({ endpoint: api.url, holder: 'durable' });
afterAll(() => Promise.all([functions.stop(), api.stop()]));

/** The example of docs/once.md, with a charge of the test. */
async function workOf(charge: (id: string) => unknown): Promise<Work> {
  const guide = await readFile('docs/once.md', 'utf8');
  const [, block = ''] = /^export const handler = (withDurableExecution\(.*?^\}\));?$/ms.exec(guide) ?? [];
  const code = stripTypeScriptTypes(`(${block})`).trim();
  const names = { holdfast, charge, withDurableExecution: (work: Work) => work };
  return new Function(...Object.keys(names), `return ${code}`)(...Object.values(names));
}

const outcomeOf = async (arn: string) => {
  const { Status, Result } = await functions.end(arn);
  return [Status, Result && JSON.parse(Result)];
};

describe('over the local stack', { timeout: 60_000 }, () => {
  it('the durable example of once charges once, and a later execution returns the receipt', async () => {
    let charges = 0;
    const work = await workOf(async () => ({ receipt: ++charges }));
    for (let delivery = 0; delivery < 2; delivery++)
      expect(await outcomeOf(await functions.start(work, { id: 'a' }))).toEqual(['SUCCEEDED', { receipt: 1 }]);
    expect(charges).toBe(1);
    expect(await holdfast.readOnce({ key: 'order/a' })).toMatchObject({ state: 'released', done: { by: 'orders' } });
  });

  it('the durable example of once frees its slot if the charge fails', async () => {
    const failing = await workOf(() => Promise.reject(new Error('no money')));
    expect(await outcomeOf(await functions.start(failing, { id: 'b' }))).toEqual(['FAILED', undefined]);
    expect(await holdfast.readOnce({ key: 'order/b' })).toMatchObject({ state: 'released', done: null });
    const work = await workOf(async () => 'paid');
    expect(await outcomeOf(await functions.start(work, { id: 'b' }))).toEqual(['SUCCEEDED', 'paid']);
  });

  it('the durable example of once frees the slot when its execution is stopped', async () => {
    let isCharging = false;
    const stuck = await workOf(() => {
      isCharging = true;
      return new Promise(() => {});
    });
    const stopped = await functions.start(stuck, { id: 'c' });
    await expect.poll(() => isCharging, { timeout: 20_000, interval: 20 }).toBe(true);
    expect(await holdfast.readOnce({ key: 'order/c' })).toMatchObject({ state: 'held', execution: stopped });
    await functions.kill(stopped);
    await expect
      .poll(async () => ((await holdfast.readOnce({ key: 'order/c' })) as { state: string }).state, { timeout: 20_000 })
      .toBe('released');
    const work = await workOf(async () => 'paid');
    expect(await outcomeOf(await functions.start(work, { id: 'c' }))).toEqual(['SUCCEEDED', 'paid']);
  });
});
