import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { completeOnce } from '../../shared/once/complete.ts';
import { completeInput, ONCE_NAME_FIELDS } from '../../shared/once/inputs.ts';

export const onceComplete = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'onceComplete',
    input: completeInput(),
    nameFields: ONCE_NAME_FIELDS,
    run: completeOnce(dependencies),
    logged: ['key', 'fence', 'slot', 'completed', 'repeated', 'reason'],
  });

export const handler = onceComplete();
