/** The SDK demands these, but emulators ignore them. */
export const CREDENTIALS = { AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench' };

/** The environment of a function, besides what serverless.yml sets. */
export const lambdaEnvironment = (dynamodbEndpoint: string) => ({
  ...CREDENTIALS,
  AWS_LAMBDA_FUNCTION_NAME: 'bench',
  AWS_ENDPOINT_URL_DYNAMODB: dynamodbEndpoint,
});
