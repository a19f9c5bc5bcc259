import { describe, expect, it } from 'vitest';
import type { Aws } from '../../deployment/aws.ts';
import { checkFixedParameters } from '../../deployment/check-fixed-parameters.ts';
import { ownNames } from '../../deployment/storage.ts';
import { checkLocation, checkValues, parseParameters } from '../../deployment/values.ts';
import { PARAMETERS } from '../../infrastructure/parameters.ts';
import { released } from '../support/stack/template.ts';

const REQUIRED = { stage: 'prod', codeBucket: 'code' };
const PLACE = { account: '111122223333', region: 'eu-west-1', partition: 'aws' };
/** A certificate, and the domain that it is for. */
const OF_DOMAIN = {
  domainName: 'leases.example.com',
  certificateArn: 'arn:aws:acm:eu-west-1:111122223333:certificate/1',
};
const OWN = ownNames(PLACE as Aws, released, 'prod');

describe('the parameters of a deployment', () => {
  it('a parameter that the template does not have is refused', () => {
    expect(parseParameters(['leasesTable=a=b', 'alarmTopicArn='], released)).toEqual({
      leasesTable: 'a=b',
      alarmTopicArn: '',
    });
    expect(() => parseParameters(['leaseTable=x'], released)).toThrow(
      'no parameter leaseTable: do you mean leasesTable?',
    );
    expect(() => parseParameters(['colour=x'], released)).toThrow(/^there is no parameter colour$/);
    expect(() => parseParameters(['clockSkewMs'], released)).toThrow('written name=value');
    expect(() => parseParameters(['memoryMb=128', 'memoryMb=256'], released)).toThrow('memoryMb is given twice');
  });

  it.each([
    ['stage', 'Prod', '1 to 19 characters of a-z, 0-9 and -'],
    ['stage', 'code-x', 'not begin with code or bounded-code'],
    ['stage', 'a-stage-of-more-than-19', '1 to 19'],
    ['clockSkewMs', 'half', 'clockSkewMs must be a whole number'],
    ['reportSchedule', 'rate(1 minutes)', 'reportSchedule must be like rate(1 hour)'],
    ['reportSchedule', 'rate(5 foo)', 'reportSchedule must be like rate(1 hour)'],
    ['reportSchedule', 'cron(0 0 * * *)', 'reportSchedule must be like rate(1 hour)'],
    ['commitProtocol', 'nativ', 'commitProtocol must be one of dynamo, native'],
    ['namespaces', 'team,b,team-a', 'namespaces must not contain team-a: the names of its state machines'],
    ['namespaces', 'holdfast', 'namespaces must not contain holdfast'],
    ['namespaces', 'a,holdfast-prod', 'namespaces must not contain holdfast-prod'],
    ['auth', 'none', 'auth must be one of iam, jwt'],
    ['auth', 'jwt', 'auth=jwt needs jwtIssuer'],
    ['memoryMb', '100', 'memoryMb must be a whole number from 128 to 10240'],
    ['reportOverdueSeconds', '90', 'reportOverdueSeconds must be whole minutes'],
    ['leasesTable', 'my table', 'leasesTable must be the name of a table'],
    ['noncurrentVersionDays', '0', 'noncurrentVersionDays must be a number of days'],
    ['vpcSubnetIds', 'subnet-1,subnet-2', 'vpcSubnetIds needs vpcSecurityGroupIds'],
    ['domainName', 'leases.example.com', 'domainName needs certificateArn'],
    ['logRetentionDays', '31', 'logRetentionDays must be one of'],
    ['jwtIssuer', `https://${'x'.repeat(4096)}`, 'jwtIssuer must be at most 4096 bytes'],
    [
      'kmsKeyArn',
      'arn:aws:kms:eu-west-1:111122223333:alias/mine',
      'kmsKeyArn must be an ARN like arn:aws:kms:eu-west-1',
    ],
    ['alarmTopicArn', 'arn:aws:sns:', 'alarmTopicArn must be an ARN like arn:aws:sns:eu-west-1:111122223333:name'],
    ['permissionsBoundaryArn', 'arn:aws:iam::111122223333:role/x', 'permissionsBoundaryArn must be an ARN like'],
    // limits that only the functions know
    ['commitTtlSeconds', '30', 'commitTtlSeconds must be at least 120, not 30'],
    ['commitTimeoutMs', '10', 'commitTimeoutMs must be at least 1000, not 10'],
    ['maxUploadMib', '6000', 'maxUploadMib must be at most 5120, not 6000'],
    ['multipartPartMib', '1', 'multipartPartMib must be at least 5, not 1'],
    ['reportSegments', '65', 'reportSegments must be from 1 to 64, not 65'],
  ])("the parameter %s=%s is refused in the template's or the functions' words", (name, value, words) => {
    expect(() => checkValues(released, { ...REQUIRED, [name]: value })).toThrow(words);
    expect(() => checkValues(released, REQUIRED)).not.toThrow();
  });

  it.each([
    ['kmsKeyArn', 'arn:aws:kms:us-east-1:111122223333:key/1', 'kmsKeyArn must be of the region eu-west-1'],
    ['alarmOkTopicArn', 'arn:aws:sns:eu-west-2:111122223333:calm', 'alarmOkTopicArn must be of the region eu-west-1'],
    ['certificateArn', 'arn:aws:acm:us-east-1:111122223333:certificate/1', 'certificateArn must be of the region'],
    [
      'permissionsBoundaryArn',
      'arn:aws-cn:iam::111122223333:policy/x',
      'permissionsBoundaryArn must be of the partition aws',
    ],
  ])('the parameter %s=%s is refused, because it is in the wrong place', (name, value, words) => {
    expect(() => checkLocation({ ...REQUIRED, [name]: value }, PLACE)).toThrow(words);
    const own = value.replace('aws-cn', 'aws').replace(/(us-east-1|eu-west-2)/, 'eu-west-1');
    expect(() => checkLocation({ ...REQUIRED, [name]: own, jwtIssuer: 'https://issuer.test' }, PLACE)).not.toThrow();
    expect(() => checkValues(released, { ...REQUIRED, [name]: own, ...OF_DOMAIN })).not.toThrow();
  });

  it('the template has exactly the parameters that the reference groups', () => {
    expect(() => checkValues(released, { stage: 'prod' })).toThrow('the parameter codeBucket must be given');
    expect(Object.keys(released.Parameters ?? {})).toEqual(Object.keys(PARAMETERS));
    const grouped = Object(released.Metadata?.['AWS::CloudFormation::Interface']).ParameterGroups.flatMap(
      ({ Parameters }: { Parameters: string[] }) => Parameters,
    );
    expect(grouped).toEqual(Object.keys(PARAMETERS));
  });
});

describe('a running stack', () => {
  const refuse = (previous: object, next: object, allowed: string[] = []) => {
    return checkFixedParameters(released, {
      deployed: released,
      pseudoValues: { 'AWS::AccountId': '111122223333', 'AWS::Region': 'eu-west-1' },
      previous: { ...REQUIRED, ...previous },
      next: { ...REQUIRED, ...next },
      allowed,
      stackNames: OWN,
    });
  };

  it.each([
    ['leasesTable', { leasesTable: 'my-leases' }, {}],
    ['leasesTable', {}, { leasesTable: 'my-leases' }],
    ['waitersTable', {}, { waitersTable: 'other' }],
    ['commitsTable', {}, { commitsTable: 'other' }],
    ['nameserviceTable', {}, { nameserviceTable: 'other' }],
    ['bucket', { bucket: 'one' }, { bucket: 'other' }],
    ['commitProtocol', {}, { commitProtocol: 'native' }],
    ['pointerAttributes', {}, { pointerAttributes: 'id' }],
    ['auth', {}, { auth: 'jwt' }],
    ['jwtAudience', { jwtAudience: 'a' }, { jwtAudience: 'b' }],
  ])('a running stack keeps its %s unless the caller allows the change', (name, previous, next) => {
    expect(() => refuse(previous, next)).toThrow(`--allow-change NAME`);
    expect(() => refuse(previous, next)).toThrow(`  ${name} from `);
    expect(() => refuse(previous, next, [name])).not.toThrow();
    expect(() => refuse(previous, previous)).not.toThrow();
  });

  it('a running stack names its own table or bucket, even if it is given', () => {
    expect(() => refuse({}, { leasesTable: 'other' })).toThrow(
      "leasesTable from its own 'holdfast-prod-leases' to 'other'",
    );
    expect(() => refuse({ leasesTable: 'other' }, {})).toThrow(
      "leasesTable from 'other' to its own 'holdfast-prod-leases'",
    );
    expect(() => refuse({}, { leasesTable: 'holdfast-prod-leases' })).toThrow(
      /^leasesTable=holdfast-prod-leases names what the stack has created itself: leave the parameter out$/,
    );
    expect(() => refuse({}, { leasesTable: 'holdfast-prod-leases' }, ['leasesTable'])).not.toThrow();
    expect(() => refuse({}, { auth: 'jwt', jwtIssuer: 'https://issuer.test' })).toThrow("jwtIssuer from '' to 'https");
  });

  it('a running stack accepts a value that equals the default', () => {
    expect(() => refuse({}, { commitProtocol: 'dynamo', leasesTable: '' })).not.toThrow();
    expect(() => refuse({}, { clockSkewMs: '700', memoryMb: '1024' })).not.toThrow();
  });
});
