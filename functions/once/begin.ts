import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { beginOnce } from '../../shared/once/begin.ts';
import { beginInput, ONCE_NAME_FIELDS } from '../../shared/once/inputs.ts';

export const onceBegin = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'onceBegin',
    input: beginInput(),
    nameFields: ONCE_NAME_FIELDS,
    run: beginOnce(dependencies),
    logged: ['key', 'holder', 'fence', 'outcome', 'slot', 'repeated', 'previous', 'execution', 'field', 'reason'],
  });

export const handler = onceBegin();
