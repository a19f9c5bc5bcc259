import { describe, expect, it } from 'vitest';
import { GUARD } from '../../infrastructure/logical-ids.ts';
import type { Resource, Template } from '../support/stack/packaging.ts';
import { packageLiterally } from '../support/stack/packaging.ts';
import { withParameters } from '../support/stack/template.ts';
import { isFull } from '../support/time/rounds.ts';

describe('two stages', () => {
  it('differ in their parameters only', () => {
    const [one, other] = ['one', 'other'].map((stage) => JSON.stringify(withParameters({ stage })));
    expect(one?.replaceAll(/holdfast-one\b/g, 'holdfast-other').replaceAll(/"(stage=)?one"/g, '"$1other"')).toBe(other);
  });

  it.runIf(isFull)(
    'the templates of two stages are what the framework would have packaged for each stage alone',
    async () => {
      const literal = await packageLiterally('prod', [
        '--param=auth=jwt',
        '--param=jwtIssuer=https://issuer.example',
        '--param=jwtAudience=holdfast',
        '--param=exclusiveTargets=nightly-*',
        '--param=leasesTable=shared-leases',
        '--param=bucket=shared-bucket',
        '--param=reportSchedule=rate(1 hour)',
        '--param=autoClean=true',
        '--param=acquireConcurrency=500',
        '--param=clockSkewMs=700',
        '--param=alarms=all',
        '--param=namespaceExecutions=any',
        '--param=durableFunctions=orders-*',
      ]);
      const ours = withParameters({
        stage: 'prod',
        auth: 'jwt',
        jwtIssuer: 'https://issuer.example',
        jwtAudience: 'holdfast',
        exclusiveTargets: 'nightly-*',
        leasesTable: 'shared-leases',
        bucket: 'shared-bucket',
        reportSchedule: 'rate(1 hour)',
        autoClean: 'true',
        acquireConcurrency: '500',
        clockSkewMs: '700',
        alarms: 'all',
        namespaceExecutions: 'any',
        durableFunctions: 'orders-*',
      });
      for (const [id, resource] of Object.entries(comparable(literal))) {
        // What the release alone adds: code, and what platform teams demand.
        const { Code: _, ...theirs } = resource.Properties ?? {};
        expect(comparable(ours)[id]?.Properties, id).toMatchObject(throughAlias(theirs));
        // The stage has settings of routes, so it comes after them.
        const dependsOn = id === 'HttpApiStage' ? expect.any(Array) : resource.DependsOn;
        expect(comparable(ours)[id]?.DependsOn, id).toEqual(dependsOn);
      }
      const added = Object.keys(comparable(ours)).filter(
        (id) => !(id in literal.Resources) && !id.endsWith(HTTP_ALIAS) && !id.startsWith(GUARD),
      );
      expect(added.toSorted()).toEqual(['AccessLogGroup', 'Dashboard']);
    },
    300_000,
  );
});

const HTTP_ALIAS = 'HttpAlias';

/** What the API invokes is an alias of each function in the release. */
const throughAlias = (properties: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(properties).map(([field, value]) => {
      const ofApi =
        field === 'IntegrationUri' || (field === 'FunctionName' && properties.Principal === 'apigateway.amazonaws.com');
      const [id] = [Object(value)['Fn::GetAtt']].flat();
      return [field, ofApi ? { Ref: `${id}${HTTP_ALIAS}` } : value];
    }),
  );

/** Every resource of the release depends on the guard. */
const withoutGuard = (dependsOn: string[]): string[] | undefined => {
  const others = dependsOn.filter((id) => id !== GUARD);
  return others.length > 0 ? others : undefined;
};

/** Numbers as CloudFormation takes them from parameters, without the guard, and without the framework's own bucket and role. */
const comparable = ({ Resources }: Template): Record<string, Resource> => {
  const kept = Object.entries(Resources).filter(([id]) => !/^ServerlessDeployment|^IamRoleLambdaExecution$/.test(id));
  return JSON.parse(
    JSON.stringify(Object.fromEntries(kept), (name, value) => {
      if (name === 'DependsOn') return withoutGuard([value].flat());
      return typeof value === 'number' ? String(value) : value;
    }),
  );
};
