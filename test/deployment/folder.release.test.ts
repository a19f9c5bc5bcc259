import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { namesInZip, npmRunRelease, readReleased, releaseFolder } from '../support/stack/packaging.ts';
import { functions, released as withoutCode } from '../support/stack/template.ts';

const packaged = await npmRunRelease();
const released = readReleased();
const zips = readdirSync(join(releaseFolder(), 'functions'));

const text = (file: string) => readFileSync(join(releaseFolder(), file), 'utf8');

describe('npm run release', () => {
  it('npm run release works without network and credentials, and does not print a warning', () => {
    expect(packaged.output).toContain(`Wrote ${releaseFolder()}`);
    expect(packaged.exitCode).toBe(0);
    expect(packaged.connections).toBe('');
    // The output of npm itself depends on the machine.
    expect(packaged.output.replaceAll(/^npm .*$/gm, '')).not.toMatch(/warn|deprecat/i);
  });

  it.each(functions)(
    'npm run release zips of $name what its function loads, and its licences',
    async ({ name, bundle }) => {
      const built = await readdir(bundle);
      const scripts = built.filter((file) => file.endsWith('.mjs'));
      expect(scripts).toContain('index.mjs');
      expect(built.filter((file) => /^start-.*\.mjs\.map$/.test(file))).toHaveLength(1);
      const zip = zips.find((one) => one.startsWith(`${name}-`)) ?? '';
      const zipped = namesInZip(join(releaseFolder(), 'functions', zip));
      expect(zipped.sort()).toEqual([...scripts, 'LICENSES.txt'].map((file) => join(bundle, file)).sort());
    },
  );

  it('npm run release writes the template that other tests are about', () => {
    const unnamed = (template: object) =>
      JSON.parse(JSON.stringify(template).replaceAll(/-[0-9a-f]{64}\.zip/g, '.zip'));
    expect(unnamed(released)).toEqual(unnamed(withoutCode));
  });
});

describe('a release', () => {
  it('a release has a checksum of every file in it', () => {
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

  it('a release has a bill of materials with the packages that it contains', () => {
    const bom = JSON.parse(text('sbom.cdx.json'));
    const names = bom.components.map(({ purl }: { purl: string }) => purl);
    expect(names).toContainEqual(expect.stringMatching(/^pkg:npm\/%40aws-sdk\/client-dynamodb@\d/));
    expect(names).toContainEqual(expect.stringMatching(/^pkg:npm\/zod@\d/));
    expect(bom.metadata.component.purl).toBe(`pkg:generic/${basename(releaseFolder())}`.replace('-', '@'));
    for (const { licenses, purl } of bom.components) expect(licenses, purl).toHaveLength(1);
    const users = new Set(
      bom.components.flatMap((one: { properties: { value: string }[] }) => one.properties.map(({ value }) => value)),
    );
    for (const { name } of functions) expect(users).toContain(name);
    for (const file of ['holdfast.mjs', 'credentials.mjs', 'deploy.mjs']) expect(users).toContain(file);
  });

  it('a release has the licences of the packages in its commands', () => {
    const licences = text('LICENSES.txt');
    expect(licences).toMatch(/^preact@[\d.]+ \(MIT\)$[\s\S]{0,300}?Permission is hereby granted/m);
    expect(licences).toMatch(/^@aws-sdk\/client-cloudformation@[\d.]+ \(Apache-2.0\)$/m);
  });

  it('a release does not name a stage or a zip of another build', () => {
    expect(zips).toHaveLength(functions.length);
    const template = JSON.stringify(released);
    for (const zip of zips) expect(template).toContain(`\${codePrefix}${zip}`);
    expect(template).not.toMatch(/holdfast-(dev|prod)|0stage0/);
  });
});
