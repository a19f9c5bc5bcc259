import { replaceFence } from '../../shared/commits/commit.ts';
import { commitsFromEnvironment } from '../../shared/commits/environment.ts';
import { COMMIT_NAME_FIELDS, resetFenceInput } from '../../shared/commits/inputs.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';

export const resetFence = (dependencies = commitsFromEnvironment()) =>
  lambdaFunction({
    name: 'resetFence',
    input: resetFenceInput(),
    nameFields: COMMIT_NAME_FIELDS,
    run: replaceFence(dependencies),
    logged: ['path', 'etag', 'generation', 'fence', 'highest', 'repeated', 'expectedFence', 'commitId'],
    audited: true,
  });

export const handler = resetFence();
