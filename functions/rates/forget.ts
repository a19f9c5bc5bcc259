import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { forgetRate } from '../../shared/rates/forget-rate.ts';
import { forgetRateInput, RATE_NAMES } from '../../shared/rates/inputs.ts';

export const rateForget = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'rateForget',
    input: forgetRateInput(),
    names: RATE_NAMES,
    run: forgetRate(dependencies),
    logged: ['key', 'forgotten'],
    audited: true,
  });

export const handler = rateForget();
