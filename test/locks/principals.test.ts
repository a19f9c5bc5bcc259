import { describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const [ann, eve] = [call({ principal: 'ann' }), call({ principal: 'eve' })];
const asked = { key: 'k', holder: 'worker', requestId: 'run-42' };

describe('a request id and a holder that another caller sent before', () => {
  it.each([
    ['another caller', eve],
    ['a caller without a name', call()],
  ])(
    'a request id and a holder that another caller sent before, by %s, do not end the first acquire of their own caller',
    async (_, other) => {
      const world = await leaseWorld();
      const { leaseId } = await world.acquire(asked, other);
      await world.release({ key: 'k', leaseId }, other);
      const grant = await world.acquire(asked, ann);
      expect(grant).toMatchObject({ repeated: false, holder: 'worker' });
      expect(grant.leaseId).not.toBe(leaseId);
    },
  );

  it('a request id and a holder that another caller sent before do not end a task of their own caller, which is granted the lease', async () => {
    const world = await queueWorld();
    const { leaseId } = await world.acquire(asked, eve);
    await world.release({ key: 'k', leaseId }, eve);
    const { task } = await world.park(asked);
    expect(world.grantOf(task)).toMatchObject({ key: 'k' });
    await world.steps.stop();
  });
});
