import { lambdaFunction } from '../../shared/lambda/function.ts';
import { acquire as run } from '../../shared/locks/calls/acquire.ts';
import { acquireInput, LEASE_NAME_FIELDS } from '../../shared/locks/calls/inputs.ts';
import type { Acquired, Parked } from '../../shared/locks/calls/types.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';

export const acquire = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'acquire',
    input: acquireInput(),
    nameFields: LEASE_NAME_FIELDS,
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
