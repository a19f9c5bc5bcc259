import { SFNClient } from '@aws-sdk/client-sfn';
import { readHealth } from '../../../functions/contract/health.ts';
import { readContract } from '../../../functions/contract/read.ts';
import { whoami } from '../../../functions/contract/whoami.ts';
import { systemClock } from '../../../shared/surroundings/clock.ts';
import { startStepFunctions } from '../emulators/step-functions.ts';
import { startApi } from '../stack/api.ts';
import { allWorlds } from './client-worlds.ts';

/** The documents on expired records say that two hours have passed. */
const twoHoursOn = { ...systemClock, now: () => systemClock.now() + 7_200_000 };

/** Everything that a fresh `npm start` serves, over HTTP. */
export async function wholeApi() {
  const steps = await startStepFunctions();
  const stepFunctions = async () => new SFNClient({ endpoint: steps.endpoint });
  const worlds = await allWorlds(twoHoursOn, { stepFunctions });
  const described = { readContract: readContract(), readHealth: readHealth(), whoami: whoami({}) };
  const api = await startApi({ ...worlds.handlers, ...described });
  const stop = async () => void (await Promise.all([api.stop(), steps.stop()]));
  return { url: api.url, stop, commits: worlds.commits, tasks: steps.tasks };
}
