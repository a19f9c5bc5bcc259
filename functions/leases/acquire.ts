import { lambdaFunction } from '../../shared/lambda/function.ts';
import type { Acquired, Parked } from '../../shared/line/calls.ts';
import { acquire as run } from '../../shared/locks/acquire.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';

export const acquire = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'acquire',
    input: acquireInput(),
    names: LEASE_NAMES,
    run: run(dependencies),
    logged: [
      'key',
      'holder',
      'fence',
      'repeated',
      'previous',
      'execution',
      'ticket',
      'parked',
      'place',
      'waiting',
      'mode',
      'limit',
      'weight',
      'used',
      'reason',
    ],
    created: (answer: Acquired | Parked) => 'parked' in answer || !answer.repeated,
  });

export const handler = acquire();
