import { fenceResetter } from '../../shared/commits/commit.ts';
import { commitsFromEnvironment } from '../../shared/commits/environment.ts';
import { COMMIT_NAMES, resetFenceInput } from '../../shared/commits/inputs.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';

export const resetFence = (dependencies = commitsFromEnvironment()) =>
  lambdaFunction({
    name: 'resetFence',
    input: resetFenceInput(),
    names: COMMIT_NAMES,
    run: fenceResetter(dependencies),
    logged: ['path', 'etag', 'generation', 'fence', 'highest', 'repeated', 'expectedFence', 'commitId'],
    audited: true,
  });

export const handler = resetFence();
