import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/leases/environment.ts';
import { repairInput } from '../../shared/leases/inputs.ts';
import { repairer } from '../../shared/leases/queue/repair.ts';

export const repairQueues = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'repairQueues',
    input: repairInput(),
    run: repairer(dependencies),
    logged: ['keys', 'granted', 'told', 'unanswered', 'complete'],
  });

export const handler = repairQueues();
