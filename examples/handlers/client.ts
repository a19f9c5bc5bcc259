import { Holdfast } from 'holdfast-client';

/**
 * The client may be in module scope: it has no connection and no timer of its own. In AWS, add `credentials: fromNodeProviderChain()` of
 * `@aws-sdk/credential-providers`, which finds the role of a Lambda function and of an ECS task.
 */
export const holdfast = new Holdfast({
  endpoint: process.env.HOLDFAST_ENDPOINT ?? 'http://127.0.0.1:3000',
  holder: process.env.AWS_LAMBDA_FUNCTION_NAME ?? process.env.HOSTNAME ?? 'example',
});
