import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Spec, Validation } from '@cyclonedx/cyclonedx-library';
import { describe, expect, it } from 'vitest';
import type { Resource, Template } from '../support/packaging.ts';
import { packageLiterally, releaseFolder } from '../support/packaging.ts';
import { isFull } from '../support/rounds.ts';
import { functions, released, withParameters } from '../support/template.ts';

const text = (file: string) => readFileSync(join(releaseFolder(), file), 'utf8');

describe('a release', () => {
  it('has a checksum of every file in it', () => {
    const sums = text('SHA256SUMS').trim().split('\n');
    const files = readdirSync(releaseFolder(), { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    expect(sums).toHaveLength(files.length - 1);
    for (const line of sums) {
      const [sum, file = ''] = line.split('  ');
      expect(
        createHash('sha256')
          .update(readFileSync(join(releaseFolder(), file)))
          .digest('hex'),
        file,
      ).toBe(sum);
    }
  });

  it('has a valid CycloneDX bill of materials with the packages of every function and command', async () => {
    const bom = JSON.parse(text('sbom.cdx.json'));
    expect(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text('sbom.cdx.json'))).toBeNull();
    const names = bom.components.map(({ purl }: { purl: string }) => purl);
    expect(names).toContainEqual(expect.stringMatching(/^pkg:npm\/%40aws-sdk\/client-dynamodb@\d/));
    expect(names).toContainEqual(expect.stringMatching(/^pkg:npm\/zod@\d/));
    for (const { licenses, purl } of bom.components) expect(licenses, purl).toHaveLength(1);
    const users = new Set(
      bom.components.flatMap((one: { properties: { value: string }[] }) => one.properties.map(({ value }) => value)),
    );
    for (const { name } of functions) expect(users).toContain(name);
    for (const file of ['holdfast.mjs', 'deploy.mjs']) expect(users).toContain(file);
  });

  it('has the licences of what its commands are made of', () => {
    const licences = text('LICENSES.txt');
    expect(licences).toMatch(/^preact@[\d.]+ \(MIT\)$[\s\S]{0,300}?Permission is hereby granted/m);
    expect(licences).toMatch(/^@aws-sdk\/client-cloudformation@[\d.]+ \(Apache-2.0\)$/m);
  });

  it('names no stage and no zip of another build', () => {
    const zips = readdirSync(join(releaseFolder(), 'functions'));
    expect(zips).toHaveLength(functions.length);
    const template = JSON.stringify(released);
    for (const zip of zips) expect(template).toContain(`\${codePrefix}${zip}`);
    expect(template).not.toMatch(/holdfast-(dev|prod)|0stage0/);
  });
});

describe('two stages', () => {
  it('differ in their parameters only', () => {
    const [one, other] = ['one', 'other'].map((stage) => JSON.stringify(withParameters({ stage })));
    expect(one?.replaceAll(/holdfast-one\b/g, 'holdfast-other').replaceAll('"one"', '"other"')).toBe(other);
  });

  it.runIf(isFull)(
    'are what the framework would have packaged for one of them alone',
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
      });
      for (const [id, resource] of Object.entries(comparable(literal))) {
        // What the release alone adds: code, and what platform teams demand.
        const { Code: _, ...theirs } = resource.Properties ?? {};
        expect(comparable(ours)[id]?.Properties, id).toMatchObject(throughAlias(theirs));
        expect(comparable(ours)[id]?.DependsOn, id).toEqual(resource.DependsOn);
      }
      const added = Object.keys(comparable(ours)).filter(
        (id) => !(id in literal.Resources) && !id.endsWith(HTTP_ALIAS),
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

/** Numbers as CloudFormation takes them from parameters, and without the framework's own bucket and role. */
const comparable = ({ Resources }: Template): Record<string, Resource> => {
  const kept = Object.entries(Resources).filter(([id]) => !/^ServerlessDeployment|^IamRoleLambdaExecution$/.test(id));
  return JSON.parse(
    JSON.stringify(Object.fromEntries(kept), (_, value) => (typeof value === 'number' ? String(value) : value)),
  );
};
