import { lambdaFunction } from '../../shared/lambda/function.ts';
import { extendLease } from '../../shared/leases/heartbeat.ts';
import { leasesFromEnvironment } from '../../shared/locks/environment.ts';
import { heartbeatInput } from '../../shared/locks/inputs.ts';
import { LEASE_NAMES } from '../../shared/locks/names.ts';
import { hasPermitId, route } from '../../shared/locks/route.ts';

export const heartbeat = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'heartbeat',
    input: heartbeatInput(),
    names: LEASE_NAMES,
    run: route(dependencies, {
      isForPermit: hasPermitId,
      lease: extendLease,
      permit: async () => (await import('../../shared/permits/heartbeat.ts')).extendPermit,
    }),
    logged: ['key', 'holder', 'fence', 'reason'],
  });

export const handler = heartbeat();
