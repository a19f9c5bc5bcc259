import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { startApi } from '../support/stack/api.ts';
import { isFull } from '../support/time/rounds.ts';
import { onceWorld } from '../support/worlds/once.ts';

let world: Awaited<ReturnType<typeof onceWorld>>;
let api: Awaited<ReturnType<typeof startApi>>;

beforeAll(async () => {
  world = await onceWorld({ clock: systemClock });
  api = await startApi(world.handlers);
});
afterAll(() => api.stop());

const CLIENT = pathToFileURL(join(import.meta.dirname, '../../clients/typescript/src/index.ts')).href;

/** Runs a program in a process of its own. @returns what the program prints; a process that does not end in time is killed, and fails the test */
async function outputOf(program: string): Promise<string> {
  const source = `
    import { Holdfast } from '${CLIENT}';
    const holdfast = new Holdfast({ endpoint: '${api.url}', holder: 'program' });
    const untilAborted = (signal) => new Promise((resolve) => signal.addEventListener('abort', resolve));
    ${program}`;
  const args = ['--input-type=module', '--eval', source];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
  return stdout.trim();
}

it("a process that waits only for its lease's signal runs until the signal aborts", async () => {
  const output = await outputOf(`
    const options = { ttlSeconds: 60, maxHoldMs: 1500 };
    const error = await holdfast.withLease('waits', options, (lease) => untilAborted(lease.signal)).catch((reason) => reason);
    console.log(error.code, error.reason);`);
  expect(output).toBe('LeaseLost maxHold');
  expect(await world.rawItem('waits')).not.toHaveProperty('lease_version');
});

it.runIf(isFull)('a process runs until its work ends, even after the loss of its lease', async () => {
  const output = await outputOf(`
    const work = async (lease) => {
      await untilAborted(lease.signal);
      await new Promise((resolve) => setTimeout(resolve, 500).unref());
      console.log('the work has ended');
    };
    const error = await holdfast.withLease('goes on', { ttlSeconds: 60, maxHoldMs: 500 }, work).catch((reason) => reason);
    console.log(error.reason);`);
  expect(output).toBe('the work has ended\nmaxHold');
  expect(await world.rawItem('goes on')).not.toHaveProperty('lease_version');
});

it.runIf(isFull)('a process that waits for the signals of several leases runs until they abort', async () => {
  const output = await outputOf(`
    const entries = [{ key: 'one', maxHoldMs: 1500 }, { key: 'two' }];
    const error = await holdfast.withLeases(entries, ({ signal }) => untilAborted(signal)).catch((reason) => reason);
    console.log(error.key, error.reason);`);
  expect(output).toBe('one maxHold');
  expect(await world.rawItem('two')).not.toHaveProperty('lease_version');
});

it.runIf(isFull)('a process with leases of acquireAll ends when it has nothing else to do', async () => {
  const several = CLIENT.replace('index.ts', 'several.ts');
  const output = await outputOf(`
    const { acquireAll } = await import('${several}');
    const acquire = (key, options) => holdfast.acquire(key, options);
    await acquireAll(holdfast.core.surroundings, acquire, [{ key: 'first' }, { key: 'second' }], {});
    console.log('held');`);
  expect(output).toBe('held');
  expect(await world.rawItem('second')).toHaveProperty('lease_version');
});

it.runIf(isFull)('a process whose leader waits for its signal runs until the leader stops', async () => {
  const output = await outputOf(`
    const signal = AbortSignal.timeout(1500);
    await holdfast.lead('leads', { signal, onElected: (lease) => untilAborted(lease.signal) });
    console.log('nobody leads');`);
  expect(output).toBe('nobody leads');
  expect(await world.rawItem('leads')).not.toHaveProperty('lease_version');
});

it('a process that holds a lease by acquire, and does nothing else, ends', async () => {
  const output = await outputOf(`
    await holdfast.acquire('held', { ttlSeconds: 60 });
    console.log('held');`);
  expect(output).toBe('held');
  expect(await world.rawItem('held')).toHaveProperty('lease_version');
});

it.runIf(isFull)('a process whose run waits for its signal runs until the signal aborts', async () => {
  const output = await outputOf(`
    const options = { ttlSeconds: 60, maxHoldMs: 1500 };
    const error = await holdfast.once('waits', options, (run) => untilAborted(run.signal)).catch((reason) => reason);
    console.log(error.code, error.reason);`);
  expect(output).toBe('LeaseLost maxHold');
  expect(await world.rawRow('waits')).not.toHaveProperty('lease_version');
});
