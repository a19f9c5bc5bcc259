import { afterAll, afterEach, inject, vi } from 'vitest';
import { beginFile, testSeed } from '../chance/seed.ts';
import { dynamodbEndpoint } from '../emulators/endpoint.ts';

const before = { ...process.env };
beginFile();

afterEach(({ task }) => {
  if (task.result?.state === 'fail') console.error(`SEED=${testSeed()} repeats what was random in it`);
});

/** Files share a worker. A file that failed half way must not leave its clock or its settings to the next. */
afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
});

// A developer's own S3 comes with its own credentials.
const { AWS_ENDPOINT_URL_S3: givenS3, ...given } = process.env;
/** Sets what Lambda would have set before the imports of the functions under test. */
Object.assign(process.env, inject('service').environment, {
  AWS_ENDPOINT_URL_DYNAMODB: dynamodbEndpoint(),
  AWS_ENDPOINT_URL_S3: inject('s3Endpoint'),
  AWS_REGION: (givenS3 && given.AWS_REGION) || 'us-east-1',
  AWS_ACCESS_KEY_ID: (givenS3 && given.AWS_ACCESS_KEY_ID) || 'test',
  AWS_SECRET_ACCESS_KEY: (givenS3 && given.AWS_SECRET_ACCESS_KEY) || 'test',
  LOG_LEVEL: 'SILENT',
  METRICS_NAMESPACE: '',
});
