import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { completeOnce } from '../../shared/once/complete.ts';
import { completeInput, ONCE_NAMES } from '../../shared/once/inputs.ts';

export const onceComplete = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'onceComplete',
    input: completeInput(),
    names: ONCE_NAMES,
    run: completeOnce(dependencies),
    logged: ['key', 'fence', 'slot', 'completed', 'repeated', 'reason'],
  });

export const handler = onceComplete();
