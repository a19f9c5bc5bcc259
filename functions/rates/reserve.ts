import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { RATE_NAMES, reserveInput } from '../../shared/rates/inputs.ts';
import { reserveRate } from '../../shared/rates/reserve.ts';

export const rateReserve = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'rateReserve',
    input: reserveInput(),
    names: RATE_NAMES,
    run: reserveRate(dependencies),
    created: ({ repeated }) => !repeated,
    logged: ['key', 'holder', 'waitMs', 'boundBy', 'repeated', 'rateChanged'],
  });

export const handler = rateReserve();
