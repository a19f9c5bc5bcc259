/** Account and region of everything local, as in ARNs. */
export const ACCOUNT = '000000000000';
export const REGION = 'us-east-1';

/** What CloudFormation would fill in. */
export const PSEUDO_PARAMETERS: Record<string, string> = {
  'AWS::AccountId': ACCOUNT,
  'AWS::Region': REGION,
  'AWS::Partition': 'aws',
};
