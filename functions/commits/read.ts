import { commitsFromEnvironment } from '../../shared/commits/environment.ts';
import { COMMIT_NAMES, readInput } from '../../shared/commits/inputs.ts';
import { reader } from '../../shared/commits/read.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';

export const readCommit = (dependencies = commitsFromEnvironment()) =>
  lambdaFunction({
    name: 'readCommit',
    input: readInput(),
    names: COMMIT_NAMES,
    run: reader(dependencies),
    logged: ['path', 'etag', 'size', 'fence'],
  });

export const handler = readCommit();
