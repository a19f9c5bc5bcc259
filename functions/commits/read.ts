import { commitsFromEnvironment } from '../../shared/commits/environment.ts';
import { COMMIT_NAME_FIELDS, readPathInput } from '../../shared/commits/inputs.ts';
import { readPath } from '../../shared/commits/read.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';

export const readCommit = (dependencies = commitsFromEnvironment()) =>
  lambdaFunction({
    name: 'readCommit',
    input: readPathInput(),
    nameFields: COMMIT_NAME_FIELDS,
    run: readPath(dependencies),
    logged: ['path', 'etag', 'size', 'fence'],
  });

export const handler = readCommit();
