import { describe, expect, it } from 'vitest';
import { rateWorld } from '../support/worlds/rates.ts';

const { reserve, clock, requests } = await rateWorld();

describe('a call that reserves', () => {
  it('a call that reserves at an idle key starts now, by one write', async () => {
    requests.sent.length = 0;
    expect(await reserve({ key: 'idle', rates: [{ limit: 60, per: '1m' }] })).toMatchObject({
      ...{ key: 'idle', startAt: new Date(clock.now()).toISOString(), waitMs: 0, sleepSeconds: 0 },
      ...{ boundBy: 'requests', repeated: false },
    });
    expect(requests.sent).toEqual(['UpdateItem']);
  });
});
