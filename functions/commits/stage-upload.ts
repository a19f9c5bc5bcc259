import { uploadsFromEnvironment } from '../../shared/commits/environment.ts';
import { uploadInput } from '../../shared/commits/inputs.ts';
import { signUpload } from '../../shared/commits/stage.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { NO_NAME_FIELDS } from '../../shared/lambda/stored-names.ts';

export const stageUpload = (dependencies = uploadsFromEnvironment()) =>
  lambdaFunction({
    name: 'stageUpload',
    input: uploadInput(),
    nameFields: NO_NAME_FIELDS,
    run: signUpload(dependencies),
    logged: [],
    created: () => true,
  });

export const handler = stageUpload();
