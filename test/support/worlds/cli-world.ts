import { afterAll } from 'vitest';
import { Holdfast } from '../../../clients/typescript/src/index.ts';
import type { LambdaHandler } from '../../../local/lambda.ts';
import { ANY_EXECUTION } from '../../../shared/locks/executions/allowed.ts';
import { systemClock } from '../../../shared/surroundings/clock.ts';
import { builtCli } from '../programs/cli.ts';
import { startApi } from '../stack/api.ts';
import { onceWorld } from './once.ts';
import { rateHandlers } from './rates.ts';

/** The world of one test file: the built command, leases, slots and rates on the clock of this machine, and a second caller. */
export async function cliWorld() {
  /** The keys of the calls that waited as long as a call may, and were refused. */
  const waitedInVain: string[] = [];
  const { handlers, dependencies } = await onceWorld({
    clock: systemClock,
    executions: { ...ANY_EXECUTION, durableFunctions: '*' },
  });
  const acquire: LambdaHandler = async (event, context) => {
    const answer = await handlers.acquire(event, context);
    const { key, waitSeconds } = JSON.parse((event as { body: string }).body);
    if (waitSeconds > 0 && JSON.parse((answer as { body: string }).body).code === 'LeaseHeld') waitedInVain.push(key);
    return answer;
  };
  const [api, cli] = await Promise.all([startApi({ ...handlers, ...rateHandlers(dependencies), acquire }), builtCli()]);
  afterAll(() => Promise.all([api.stop(), cli.remove()]));
  return { api, cli, holdfast: new Holdfast({ endpoint: api.url, holder: 'the other' }), waitedInVain };
}
