import { commitsFromEnvironment } from '../../shared/commits/environment.ts';
import { listInFlight } from '../../shared/commits/in-flight.ts';
import { COMMIT_LIST_FIELDS, inFlightInput } from '../../shared/commits/inputs.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';

export const readInFlight = (dependencies = commitsFromEnvironment()) =>
  lambdaFunction({
    name: 'readInFlight',
    input: inFlightInput(),
    nameFields: { ...COMMIT_LIST_FIELDS, cursors: sealedCursors('commits') },
    run: listInFlight(dependencies),
    logged: ['prefix', 'limit'],
  });

export const handler = readInFlight();
