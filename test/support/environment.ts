import { inject } from 'vitest';
import { readService } from '../../local/service.ts';

/** What Lambda would have set before the functions under test are imported. */
const { environment } = await readService('test');
Object.assign(process.env, environment, {
  AWS_ENDPOINT_URL_DYNAMODB: inject('dynamodbEndpoint'),
  AWS_ENDPOINT_URL_S3: inject('s3Endpoint'),
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test',
  POWERTOOLS_LOG_LEVEL: 'SILENT',
  POWERTOOLS_METRICS_DISABLED: 'true',
});
