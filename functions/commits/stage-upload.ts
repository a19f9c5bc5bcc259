import { uploadsFromEnvironment } from '../../shared/commits/environment.ts';
import { uploadInput } from '../../shared/commits/inputs.ts';
import { stager } from '../../shared/commits/stage.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { NO_NAMES } from '../../shared/lambda/stored-names.ts';

export const stageUpload = (dependencies = uploadsFromEnvironment()) =>
  lambdaFunction({
    name: 'stageUpload',
    input: uploadInput(),
    names: NO_NAMES,
    run: stager(dependencies),
    logged: [],
    created: () => true,
  });

export const handler = stageUpload();
