/** The account and region of everything local, as ARNs have them. */
export const ACCOUNT = '000000000000';
export const REGION = 'us-east-1';

/** The values that CloudFormation would fill in. */
export const PSEUDO_PARAMETERS: Record<string, string> = {
  'AWS::AccountId': ACCOUNT,
  'AWS::Region': REGION,
  'AWS::Partition': 'aws',
  'AWS::StackId': `arn:aws:cloudformation:${REGION}:${ACCOUNT}:stack/holdfast-local/6f0a5cf4-3f4b-4f0e-9a52-3c1b8f3f9d10`,
};
