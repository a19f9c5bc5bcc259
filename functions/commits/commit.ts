import { committer } from '../../shared/commits/commit.ts';
import { commitsFromEnvironment } from '../../shared/commits/environment.ts';
import { commitInput } from '../../shared/commits/inputs.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';

export const commit = (dependencies = commitsFromEnvironment()) =>
  lambdaFunction({
    name: 'commit',
    input: commitInput(),
    run: committer(dependencies),
    created: (committed) => !committed.repeated,
  });

export const handler = commit();
