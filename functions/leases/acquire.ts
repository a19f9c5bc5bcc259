import { lambdaFunction } from '../../shared/lambda/function.ts';
import { acquireOrPark } from '../../shared/leases/acquire-or-park.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';
import { acquirePermitOr } from '../../shared/locks/routing/acquire.ts';

export const acquire = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'acquire',
    input: acquireInput(),
    names: LEASE_NAMES,
    run: acquirePermitOr(dependencies, acquireOrPark(dependencies)),
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
    created: (answer) => 'parked' in answer || !answer.repeated,
  });

export const handler = acquire();
