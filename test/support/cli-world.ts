import { afterAll } from 'vitest';
import { Holdfast } from '../../client/src/index.ts';
import type { LambdaHandler } from '../../local/lambda.ts';
import { systemClock } from '../../shared/clock.ts';
import { startApi } from './api.ts';
import { builtCli } from './cli.ts';
import { leaseWorld } from './leases.ts';

/** For the tests of a file: the command as it is built, leases on the clock of this machine, and another caller of them. */
export async function cliWorld() {
  /** The keys of calls that the service refused when they had waited as long as a call may. */
  const waitedInVain: string[] = [];
  const { handlers } = await leaseWorld({ clock: systemClock });
  const acquire: LambdaHandler = async (event, context) => {
    const answer = await handlers.acquire(event, context);
    const { key, waitSeconds } = JSON.parse((event as { body: string }).body);
    if (waitSeconds > 0 && JSON.parse((answer as { body: string }).body).code === 'LeaseHeld') waitedInVain.push(key);
    return answer;
  };
  const [api, cli] = await Promise.all([startApi({ ...handlers, acquire }), builtCli()]);
  afterAll(() => Promise.all([api.stop(), cli.remove()]));
  return { api, cli, holdfast: new Holdfast({ endpoint: api.url, holder: 'the other' }), waitedInVain };
}
