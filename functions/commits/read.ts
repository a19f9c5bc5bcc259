import { commitsFromEnvironment } from '../../shared/commits/environment.ts';
import { COMMIT_NAME_FIELDS, readInput } from '../../shared/commits/inputs.ts';
import { reader } from '../../shared/commits/read.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';

export const readCommit = (dependencies = commitsFromEnvironment()) =>
  lambdaFunction({
    name: 'readCommit',
    input: readInput(),
    nameFields: COMMIT_NAME_FIELDS,
    run: reader(dependencies),
    logged: ['path', 'etag', 'size', 'fence'],
  });

export const handler = readCommit();
