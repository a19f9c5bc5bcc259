import { Holdfast } from 'holdfast-client';

/**
 * The client can live in module scope, because it keeps neither a connection nor a timer. In AWS, add `credentials: fromNodeProviderChain()` of
 * `@aws-sdk/credential-providers`, which finds the role of a Lambda function or an ECS task.
 */
export const holdfast = new Holdfast({
  endpoint: process.env.HOLDFAST_ENDPOINT ?? 'http://127.0.0.1:3000',
  holder: process.env.AWS_LAMBDA_FUNCTION_NAME ?? process.env.HOSTNAME ?? 'example',
});
