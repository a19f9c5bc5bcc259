import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { forgetOnce } from '../../shared/once/forget.ts';
import { forgetInput, ONCE_NAME_FIELDS } from '../../shared/once/inputs.ts';

export const onceForget = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'onceForget',
    input: forgetInput(),
    nameFields: ONCE_NAME_FIELDS,
    run: forgetOnce(dependencies),
    logged: ['key', 'fence', 'slot', 'forgotten'],
    audited: true,
  });

export const handler = onceForget();
