import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { acquire as acquireKey } from '../../shared/locks/calls/acquire.ts';
import { breakGrant } from '../../shared/locks/calls/break.ts';
import { acquireInput, type ReadInput } from '../../shared/locks/calls/inputs.ts';
import { readKeyOrList } from '../../shared/locks/calls/read.ts';
import { release as releaseCall } from '../../shared/locks/calls/release.ts';
import { call } from '../support/emulators/aws.ts';
import { documented } from '../support/stack/contract.ts';
import { lineWorld } from '../support/worlds/line.ts';

// Readers of a key and its next holder see which operator broke a grant, and when.

const world = await lineWorld();
afterAll(() => world.steps.stop());
const { dependencies, clock, steps, rawItem } = world;
const taken = documented('acquire', acquireKey(dependencies));
const released = documented('release', releaseCall(dependencies));
const broken = documented('breakLease', breakGrant(dependencies));
const lookedUp = documented('readLeases', readKeyOrList(dependencies));

const OPERATOR = 'arn:aws:sts::123456789012:assumed-role/Operator/ann';
const ann = call({ principal: OPERATOR });
const bob = call({ principal: 'arn:aws:iam::123456789012:user/bob' });
const worker = call({ principal: 'arn:aws:iam::123456789012:user/worker' });

const input = acquireInput();
const acquire = async (asked: object) => {
  clock.advance(1);
  const answer = await taken(input.parse({ holder: 'worker', ...asked }), worker);
  return answer as Extract<typeof answer, { leaseId: string }>;
};
const park = async (asked: object) => {
  const task = steps.newTask();
  await acquire({ holder: 'next', taskToken: task.token, ...asked });
  return task;
};
const release = ({ key, leaseId }: { key: string; leaseId: string }) => released({ key, leaseId }, worker);
const show = (query: ReadInput) => lookedUp(query, call());
const now = () => new Date(clock.now()).toISOString();

beforeEach(() => {
  clock.advance(60_000);
});

describe('leases', () => {
  it('the operator that broke a lease is named until the next grant', async () => {
    const grant = await acquire({ key: 'waits' });
    expect(await show({ key: 'waits' })).toMatchObject({ brokenAt: null, brokenBy: null });
    clock.advance(5000);
    await broken({ key: 'waits', fence: grant.fence, wait: true }, ann);
    const named = { brokenAt: now(), brokenBy: OPERATOR };
    expect(await show({ key: 'waits' })).toMatchObject({ state: 'held', ending: true, ...named });
    expect(await show({ prefix: 'waits' })).toMatchObject({ leases: [named] });
    clock.advance(5000);
    await release(grant);
    expect(await show({ key: 'waits' })).toMatchObject({ state: 'released', ending: false, ...named });
    const next = await acquire({ key: 'waits', holder: 'next' });
    expect(next.previous).toMatchObject({ holder: 'worker', ended: 'broken', by: OPERATOR });
    expect(await show({ key: 'waits' })).toMatchObject({ brokenAt: null, brokenBy: null, previous: null });
    expect(await rawItem('waits')).not.toHaveProperty('broken_by');
  });

  it('the operator that broke a lease is named after a break at once', async () => {
    const { fence } = await acquire({ key: 'at once' });
    await broken({ key: 'at once', fence }, ann);
    expect(await show({ key: 'at once' })).toMatchObject({ state: 'released', brokenAt: now(), brokenBy: OPERATOR });
  });

  it('the first operator that broke a lease is named, not a second one', async () => {
    const { fence } = await acquire({ key: 'twice' });
    await broken({ key: 'twice', fence, wait: true }, ann);
    const first = { brokenAt: now(), brokenBy: OPERATOR };
    clock.advance(5000);
    await broken({ key: 'twice', fence }, bob);
    expect(await show({ key: 'twice' })).toMatchObject({ state: 'released', ...first });
  });

  it.each([
    ['waits for the holder', true],
    ['ends the lease at once', false],
  ])('after a break that %s, the next holder and readers see the operator', async (name, wait) => {
    const grant = await acquire({ key: name });
    const task = await park({ key: name });
    await broken({ key: name, fence: grant.fence, wait }, ann);
    if (wait) await release(grant);
    const previous = { holder: 'worker', fence: grant.fence, ended: 'broken', at: now(), by: OPERATOR };
    expect(task.output).toMatchObject({ holder: 'next', previous });
    expect(await show({ key: name })).toMatchObject({ holder: 'next', brokenAt: null, brokenBy: null, previous });
    await release(task.output as { key: string; leaseId: string });
    const last = await park({ key: name, holder: 'last' });
    expect(last.output).toMatchObject({ previous: { holder: 'next', ended: 'released' } });
    expect(last.output).not.toHaveProperty('previous.by');
    expect(await rawItem(name)).not.toHaveProperty('prev_by');
  });

  it.each([true, false])('the operator is unknown if the break was not authenticated: with wait %s', async (wait) => {
    const key = `unknown ${wait}`;
    const grant = await acquire({ key });
    const task = await park({ key });
    await broken({ key, fence: grant.fence, wait }, call());
    expect(await show({ key })).toMatchObject({ brokenBy: null });
    if (wait) await release(grant);
    expect(task.output).toMatchObject({ previous: { ended: 'broken' } });
    expect(task.output).not.toHaveProperty('previous.by');
  });

  it('the operator that broke a lease is named by at most 256 characters', async () => {
    const { fence } = await acquire({ key: 'long' });
    await broken({ key: 'long', fence }, call({ principal: 'x'.repeat(2000) }));
    expect(await show({ key: 'long' })).toMatchObject({ brokenBy: 'x'.repeat(256) });
  });
});

describe('permits', () => {
  it('the operator that broke a permit is named while the permit ends', async () => {
    const grant = await acquire({ key: 'several', limit: 2 });
    await acquire({ key: 'several', holder: 'other', limit: 2 });
    clock.advance(5000);
    await broken({ key: 'several', fence: grant.fence, wait: true }, ann);
    const named = { brokenAt: now(), brokenBy: OPERATOR };
    const none = { brokenAt: null, brokenBy: null };
    const holders = [
      { holder: 'worker', ending: true, ...named },
      { holder: 'other', ending: false, ...none },
    ];
    expect(await show({ key: 'several' })).toMatchObject({ holders });
    expect(await show({ prefix: 'several', holder: 'worker' })).toMatchObject({ leases: [named] });
    await release(grant);
    expect(await show({ key: 'several' })).toMatchObject({ holders: [{ holder: 'other', ...none }] });
  });
});
