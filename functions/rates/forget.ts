import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { forgetRate } from '../../shared/rates/forget-rate.ts';
import { forgetRateInput, RATE_NAME_FIELDS } from '../../shared/rates/inputs.ts';

export const rateForget = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'rateForget',
    input: forgetRateInput(),
    nameFields: RATE_NAME_FIELDS,
    run: forgetRate(dependencies),
    logged: ['key', 'forgotten'],
    audited: true,
  });

export const handler = rateForget();
