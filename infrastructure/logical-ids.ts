/** The id that the framework gives a function in the template. @param name as in the .yml files of this folder */
export const lambdaId = (name: string) => `${capital(name)}LambdaFunction`;

export const capital = (name: string) => `${name[0]?.toUpperCase()}${name.slice(1)}`;

/** The custom resource that refuses changes of fixed parameters. */
export const CHANGE_CHECK = 'ChangeCheck';

/** The account and the region in ARNs of the local stack. */
export const ACCOUNT = '000000000000';
export const REGION = 'us-east-1';

/** The local stack needs these values, which CloudFormation would fill in. */
export const PSEUDO_PARAMETERS: Record<string, string> = {
  'AWS::AccountId': ACCOUNT,
  'AWS::Region': REGION,
  'AWS::Partition': 'aws',
  'AWS::StackId': `arn:aws:cloudformation:${REGION}:${ACCOUNT}:stack/holdfast-local/6f0a5cf4-3f4b-4f0e-9a52-3c1b8f3f9d10`,
};
