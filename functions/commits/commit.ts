import { commitObject } from '../../shared/commits/commit.ts';
import { commitsFromEnvironment } from '../../shared/commits/environment.ts';
import { COMMIT_NAME_FIELDS, commitInput, MAX_COMMIT_BYTES } from '../../shared/commits/inputs.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';

export const commit = (dependencies = commitsFromEnvironment()) =>
  lambdaFunction({
    name: 'commit',
    input: commitInput(),
    nameFields: COMMIT_NAME_FIELDS,
    run: commitObject(dependencies),
    logged: ['path', 'etag', 'size', 'generation', 'protocol', 'fence', 'highest', 'repeated'],
    maxBytes: MAX_COMMIT_BYTES,
    created: (committed) => !committed.repeated,
  });

export const handler = commit();
