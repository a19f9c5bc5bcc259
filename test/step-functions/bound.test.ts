import { GetExecutionHistoryCommand } from '@aws-sdk/client-sfn';
import { afterEach, describe, expect, it } from 'vitest';
import { statesWorld } from '../support/emulators/states.ts';
import { exclusionWorld } from '../support/stack/exclusion.ts';

// The wrapper without ttlSeconds: the lease lasts as long as its execution.

let states: Awaited<ReturnType<typeof exclusionWorld>>['states'];
afterEach(() => states.stop());

const TWO_MINUTES_MS = 120_000;

async function wrapped(more: object = {}) {
  const world = await exclusionWorld((handlers) => statesWorld({ handlers, secondMs: 5, limitSecondMs: 1000 }));
  states = world.states;
  const run = (input: object = {}) =>
    states.start(world.exclusive, { key: 'k', stateMachineArn: world.target, ...more, ...input });
  return { ...world, run };
}

const visited = async (executionArn: string) => {
  const { events = [] } = await states.sfn.send(new GetExecutionHistoryCommand({ executionArn }));
  return events.flatMap(({ stateEnteredEventDetails }) => stateEnteredEventDetails?.name ?? []);
};

describe('the wrapper without ttlSeconds', () => {
  it('a wrapper without ttlSeconds runs its target as long as it needs', async () => {
    const { run, atWorkNo, asked, state } = await wrapped();
    const arn = await run({ input: { n: 1 } });
    const { input, finish } = await atWorkNo(0);
    expect(input).toMatchObject({ n: 1 });
    expect(asked[0]).toMatchObject({ bound: true, execution: arn });
    expect(asked[0]).not.toHaveProperty('ttlSeconds');
    finish('done');
    expect(await states.ended(arn)).toMatchObject({ status: 'SUCCEEDED', output: 'done' });
    expect(await state('k')).toBe('released');
    const names = await visited(arn);
    expect(names).toContain('Run without a limit');
    expect(names).toHaveLength(8);
  });
});

describe('nested wrappers', () => {
  async function nested(more: object = {}) {
    const world = await wrapped({ key: 'total/tenant', limit: 5, ...more });
    const inner = { key: 'total', limit: 20, stateMachineArn: world.target };
    /** The outer wrapper runs the inner one. */
    const runNested = (total: object = {}) =>
      world.run({ stateMachineArn: world.exclusive, input: { ...inner, ...total } });
    const used = async (key: string) => (await world.readKey(key)).used ?? 0;
    /** Expects that another caller, which asks for both keys, receives them within two minutes. */
    const expectAllFree = async () => {
      world.fallBehind(-TWO_MINUTES_MS);
      for (const [key, weight] of [
        ['total/tenant', 5],
        ['total', 20],
      ] as const) {
        const wanted = { key, holder: 'next', limit: weight, weight, requestId: key };
        const acquired = async () =>
          world.acquire(wanted).then(
            () => true,
            () => false,
          );
        await expect.poll(acquired, { interval: 50, timeout: 10_000 }).toBe(true);
      }
    };
    return { ...world, runNested, used, expectAllFree };
  }

  it('both permits of nested wrappers are held while the target works', async () => {
    const { runNested, used, atWorkNo } = await nested();
    const outer = await runNested();
    const { finish } = await atWorkNo(0);
    expect([await used('total/tenant'), await used('total')]).toEqual([1, 1]);
    finish('done');
    expect(await states.ended(outer)).toMatchObject({ status: 'SUCCEEDED', output: 'done' });
    expect([await used('total/tenant'), await used('total')]).toEqual([0, 0]);
  });

  it("the target of nested wrappers receives only the inner wrapper's fence", async () => {
    const { runNested, atWorkNo } = await nested({ passFence: true });
    const passed = await runNested({ passFence: true, input: { n: 1 } });
    const first = await atWorkNo(0);
    expect(first.input).toMatchObject({ n: 1, holdfast: { key: 'total', fence: expect.any(Number) } });
    first.finish(null);
    expect((await states.ended(passed)).status).toBe('SUCCEEDED');
    const dropped = await runNested({ input: { n: 2 } });
    const second = await atWorkNo(1);
    expect(second.input).toEqual({ n: 2 });
    second.finish(null);
    expect((await states.ended(dropped)).status).toBe('SUCCEEDED');
  });

  it('a stop of the outer wrapper frees both permits while the target works', async () => {
    const { runNested, atWorkNo, expectAllFree } = await nested();
    const outer = await runNested();
    const { finish } = await atWorkNo(0);
    await states.abort(outer);
    await expectAllFree();
    finish(null);
  });

  it('a stop of the outer wrapper frees both permits during the inner release', async () => {
    const { runNested, atWorkNo, targets, expectAllFree } = await nested();
    const outer = await runNested();
    const { finish } = await atWorkNo(0);
    finish(null);
    const inner = targets.get(outer) ?? '';
    await expect.poll(async () => (await visited(inner)).includes('Release'), { interval: 5 }).toBe(true);
    await states.abort(outer).catch(() => undefined); // the execution may have ended already
    await expectAllFree();
  });
});
