import { describe, expect, it } from 'vitest';
import { CHANGE_CHECK } from '../../infrastructure/logical-ids.ts';
import { packageLiterally, type Resource, type Template } from '../support/stack/packaging.ts';
import { configured, released, template, withParameters } from '../support/stack/template.ts';
import { isFull } from '../support/time/rounds.ts';

/**
 * What is deployed changes only on purpose: the template must be the one that template.summary.txt describes. When it
 * is meant to differ, write the summary again, and read the difference before you commit it:
 *
 *     npx vitest run test/deployment/template.test.ts --update
 */
const SUMMARY = './template.summary.txt';

describe('the template', () => {
  it('the template is the stored one, and so is what parameters make of it', async () => {
    const usual = linesOf(template);
    const other = linesOf(configured);
    const summary = [
      '# The template that `npm run release` writes.',
      ...linesOf(released),
      '',
      '# With the parameters of test/support/stack/template.ts CloudFormation makes of it, instead of:',
      ...without(usual, other).map((line) => `- ${line}`),
      '# it makes:',
      ...without(other, usual).map((line) => `+ ${line}`),
      '',
    ];
    await expect(summary.join('\n')).toMatchFileSnapshot(SUMMARY);
  });
});

it('the template is within the quotas of CloudFormation, with some room to grow', () => {
  const { Parameters = {}, Resources, Outputs } = released;
  expect(Object.keys(Resources).length).toBeLessThan(450); // of 500
  expect(Object.keys(Parameters).length).toBeLessThan(150); // of 200
  expect(Object.keys(Outputs).length).toBeLessThan(150); // of 200
  expect(JSON.stringify(released).length).toBeLessThan(900_000); // of 1,048,576 bytes
  for (const [name, { Description }] of Object.entries(Parameters))
    expect(String(Description).length, name).toBeLessThanOrEqual(4000);
});

const without = (lines: string[], others: string[]): string[] => {
  const known = new Set(others);
  return lines.filter((line) => !known.has(line));
};

/**
 * The template, part by part: a line for each part that is short enough to be read, and for a long one its parts. What
 * is the same as an earlier long part names that one.
 */
function linesOf(of: object): string[] {
  const known = new Map<string, string>();
  const linesAt = (place: string, value: unknown): string[] => {
    const text = normalForm(value);
    if (text.length <= MAX_LINE || typeof value !== 'object' || value === null) return [`${place} ${text}`];
    const same = known.get(text);
    if (same) return [`${place} = ${same}`];
    known.set(text, place);
    return sorted(value).flatMap(([name, part]) => linesAt(`${place}.${name}`, part));
  };
  const { Resources = {}, ...others } = JSON.parse(JSON.stringify(of, withoutChangeCheck)) as Record<string, object>;
  return [Resources, others].flatMap((section) => sorted(section).flatMap(([id, value]) => linesAt(id, value)));
}

const MAX_LINE = 300;

/** Every resource depends on the change check (test/deployment/change-check.test.ts). One other id is written as text or as a list. */
function withoutChangeCheck(key: string, value: unknown): unknown {
  if (key === 'ZipFile') return 'CODE';
  if (key !== 'DependsOn' || !Array.isArray(value)) return value;
  const others = value.filter((id) => id !== CHANGE_CHECK);
  return others.length > 1 ? others : others[0];
}

const sorted = (value: object): [string, unknown][] =>
  Array.isArray(value)
    ? value.map((part, index) => [String(index), part])
    : Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));

/** JSON with sorted keys, without what a change of code changes. */
function normalForm(value: unknown): string {
  const sortKeys = (_key: string, part: unknown) =>
    part && typeof part === 'object' && !Array.isArray(part) ? Object.fromEntries(sorted(part)) : part;
  return JSON.stringify(value, sortKeys)
    .replaceAll(/-[0-9a-f]{16}\.zip/g, '-HASH.zip')
    .replaceAll(/Holdfast \d+\.[\w.-]+:/g, 'Holdfast VERSION:');
}

describe('two stages', () => {
  it('two stages differ only in their parameters', () => {
    const [one, other] = ['one', 'other'].map((stage) => JSON.stringify(withParameters({ stage })));
    expect(one?.replaceAll(/holdfast-one\b/g, 'holdfast-other').replaceAll(/"(stage=)?one"/g, '"$1other"')).toBe(other);
  });

  it.runIf(isFull)(
    'the template with parameters equals what the framework packages for a stage',
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
        '--param=events=ENABLED',
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
        events: 'ENABLED',
      });
      for (const [id, resource] of Object.entries(comparable(literal))) {
        // Only the release adds these: the code, and the settings that platform teams demand.
        const { Code: _, ...theirs } = resource.Properties ?? {};
        expect(comparable(ours)[id]?.Properties, id).toMatchObject(throughAlias(theirs));
        // The stage has settings of routes, so it comes after them.
        const dependsOn = id === 'HttpApiStage' ? expect.any(Array) : resource.DependsOn;
        expect(comparable(ours)[id]?.DependsOn, id).toEqual(dependsOn);
      }
      const added = Object.keys(comparable(ours)).filter(
        (id) => !(id in literal.Resources) && !id.endsWith(HTTP_ALIAS) && !id.startsWith(CHANGE_CHECK),
      );
      expect(added.toSorted()).toEqual(['AccessLogGroup', 'Dashboard']);
    },
    300_000,
  );
});

const HTTP_ALIAS = 'HttpAlias';

/** In the release, the API invokes an alias of each function. */
const throughAlias = (properties: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(properties).map(([field, value]) => {
      const ofApi =
        field === 'IntegrationUri' || (field === 'FunctionName' && properties.Principal === 'apigateway.amazonaws.com');
      const [id] = [Object(value)['Fn::GetAtt']].flat();
      return [field, ofApi ? { Ref: `${id}${HTTP_ALIAS}` } : value];
    }),
  );

/** Every resource of the release depends on the change check. */
const withoutDependence = (dependsOn: string[]): string[] | undefined => {
  const others = dependsOn.filter((id) => id !== CHANGE_CHECK);
  return others.length > 0 ? others : undefined;
};

/** Numbers as CloudFormation takes them from parameters, without the change check, and without the framework's own bucket and role. */
const comparable = ({ Resources }: Template): Record<string, Resource> => {
  const kept = Object.entries(Resources).filter(([id]) => !/^ServerlessDeployment|^IamRoleLambdaExecution$/.test(id));
  return JSON.parse(
    JSON.stringify(Object.fromEntries(kept), (name, value) => {
      if (name === 'DependsOn') return withoutDependence([value].flat());
      return typeof value === 'number' ? String(value) : value;
    }),
  );
};
