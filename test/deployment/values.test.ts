import { describe, expect, it } from 'vitest';
import { refuseSplit } from '../../deployment/guards.ts';
import { checkValues, parseParameters } from '../../deployment/values.ts';
import { PARAMETERS } from '../../infrastructure/parameters.ts';
import { released } from '../support/template.ts';

const REQUIRED = { stage: 'prod', codeBucket: 'code' };

describe('the parameters of a deployment', () => {
  it('are refused where there is none of that name', () => {
    expect(parseParameters(['leasesTable=a=b', 'alarmTopicArn='], released)).toEqual({
      leasesTable: 'a=b',
      alarmTopicArn: '',
    });
    expect(() => parseParameters(['leaseTable=x'], released)).toThrow('no parameter leaseTable: is leasesTable meant?');
    expect(() => parseParameters(['colour=x'], released)).toThrow(/^there is no parameter colour$/);
    expect(() => parseParameters(['clockSkewMs'], released)).toThrow('written name=value');
    expect(() => parseParameters(['memoryMb=128', 'memoryMb=256'], released)).toThrow('memoryMb is given twice');
  });

  it.each([
    ['stage', 'Prod', '1 to 20 of a-z, 0-9 and -'],
    ['stage', 'a-stage-of-more-than-20', '1 to 20'],
    ['clockSkewMs', 'half', 'clockSkewMs must be a whole number'],
    ['reportSchedule', 'rate(1 minutes)', 'reportSchedule must be like rate(1 hour)'],
    ['reportSchedule', 'rate(5 foo)', 'reportSchedule must be like rate(1 hour)'],
    ['reportSchedule', 'cron(0 0 * * *)', 'reportSchedule must be like rate(1 hour)'],
    ['commitProtocol', 'nativ', 'commitProtocol must be one of dynamo, native'],
    ['namespaces', 'team,b,team-a', 'namespaces must not have team-a: the state machines of team'],
    ['namespaces', 'holdfast', 'namespaces must not have holdfast'],
    ['namespaces', 'a,holdfast-prod', 'namespaces must not have holdfast-prod'],
    ['auth', 'none', 'auth must be one of iam, jwt'],
    ['auth', 'jwt', 'auth=jwt needs jwtIssuer'],
    ['memoryMb', '100', 'memoryMb must be a whole number from 128 to 10240'],
    ['reportOverdueSeconds', '90', 'reportOverdueSeconds must be whole minutes'],
    ['leasesTable', 'my table', 'leasesTable must be the name of a table'],
    ['noncurrentVersionDays', '0', 'noncurrentVersionDays must be a number of days'],
    ['vpcSubnetIds', 'subnet-1,subnet-2', 'vpcSubnetIds needs vpcSecurityGroupIds'],
    ['domainName', 'leases.example.com', 'domainName needs certificateArn'],
    ['logRetentionDays', '31', 'logRetentionDays must be one of'],
    // What only the functions know.
    ['commitTtlSeconds', '30', 'commitTtlSeconds must be at least 120, not 30'],
    ['commitTimeoutMs', '10', 'commitTimeoutMs must be at least 1000, not 10'],
    ['maxUploadMib', '6000', 'maxUploadMib must be at most 5120, not 6000'],
    ['multipartPartMib', '1', 'multipartPartMib must be at least 5, not 1'],
    ['reportSegments', '65', 'reportSegments must be from 1 to 64, not 65'],
  ])('%s=%s is refused in the words of the template or of the functions', (name, value, words) => {
    expect(() => checkValues(released, { ...REQUIRED, [name]: value })).toThrow(words);
    expect(() => checkValues(released, REQUIRED)).not.toThrow();
  });

  it('are all that a deployment must have', () => {
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
    refuseSplit(released, { previous: { ...REQUIRED, ...previous }, next: { ...REQUIRED, ...next }, allowed });
  };

  it.each([
    ['leasesTable', { leasesTable: 'my-leases' }, {}],
    ['leasesTable', {}, { leasesTable: 'my-leases' }],
    ['waitersTable', {}, { waitersTable: 'other' }],
    ['poolsTable', {}, { poolsTable: 'other' }],
    ['commitsTable', {}, { commitsTable: 'other' }],
    ['nameserviceTable', {}, { nameserviceTable: 'other' }],
    ['bucket', { bucket: 'one' }, { bucket: 'other' }],
    ['commitProtocol', {}, { commitProtocol: 'native' }],
    ['pointerAttributes', {}, { pointerAttributes: 'id' }],
    ['auth', {}, { auth: 'jwt' }],
    ['jwtAudience', { jwtAudience: 'a' }, { jwtAudience: 'b' }],
  ])('keeps its %s unless the caller allows the change', (name, previous, next) => {
    expect(() => refuse(previous, next)).toThrow(`--allow-change NAME`);
    expect(() => refuse(previous, next)).toThrow(`${name} from '`);
    expect(() => refuse(previous, next, [name])).not.toThrow();
    expect(() => refuse(previous, previous)).not.toThrow();
  });

  it('takes a value that says what the default said', () => {
    expect(() => refuse({}, { commitProtocol: 'dynamo', leasesTable: '' })).not.toThrow();
    expect(() => refuse({}, { clockSkewMs: '700', memoryMb: '1024' })).not.toThrow();
  });
});
