import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { RATE_NAME_FIELDS, settleInput } from '../../shared/rates/inputs.ts';
import { settleRate } from '../../shared/rates/settle.ts';

export const rateSettle = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'rateSettle',
    input: settleInput(),
    nameFields: RATE_NAME_FIELDS,
    run: settleRate(dependencies),
    logged: ['key', 'settled', 'cancelled'],
  });

export const handler = rateSettle();
