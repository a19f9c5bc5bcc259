import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { RATE_NAME_FIELDS, reserveInput } from '../../shared/rates/inputs.ts';
import { reserveRate } from '../../shared/rates/reserve.ts';

export const rateReserve = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'rateReserve',
    input: reserveInput(),
    nameFields: RATE_NAME_FIELDS,
    run: reserveRate(dependencies),
    created: ({ repeated }) => !repeated,
    logged: ['key', 'holder', 'waitMs', 'boundBy', 'repeated', 'rateChanged'],
  });

export const handler = rateReserve();
