import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { sbom } from '../../build/sbom.ts';
import { chromiumIn } from '../../test/support/programs/browser.ts';
import { run } from './support/run.ts';
import { toolIn } from './support/tools.ts';

const executablePath = chromiumIn();

/** In a browser, because Mermaid cannot parse a diagram without one. */
it.runIf(executablePath)('the diagrams of the documentation are valid Mermaid', async () => {
  const { stdout } = await promisify(execFile)('git', ['ls-files', '*.md']);
  const diagrams: string[] = [];
  for (const file of stdout.trim().split('\n'))
    for (const [, text = ''] of (await readFile(file, 'utf8')).matchAll(/^```mermaid\n(.*?)^```/gms))
      diagrams.push(text);
  expect(diagrams.length).toBeGreaterThan(8);
  const browser = await chromium.launch({ executablePath: String(executablePath), args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage();
    await page.addScriptTag({ path: toolIn('mermaid/dist/mermaid.min.js') });
    for (const text of diagrams) {
      const fault = await page.evaluate(
        `mermaid.parse(${JSON.stringify(text)}).then(() => 'valid', (error) => error.message)`,
      );
      expect(fault, text).toBe('valid');
    }
  } finally {
    await browser.close();
  }
});

it('the OpenAPI document has no fault that Redocly finds', async () => {
  const { stdout } = await run(
    toolIn('.bin/redocly'),
    ['lint', 'contract/openapi.json', '--format=json', '--max-problems=1000'],
    { env: { ...process.env, REDOCLY_TELEMETRY: 'off' } },
  );
  const { totals, problems } = JSON.parse(stdout);
  expect(problems).toEqual([]);
  expect(totals).toEqual({ errors: 0, warnings: 0, ignored: 0 });
});

it('the bill of materials is valid CycloneDX', async () => {
  const own = (name: string, license: string) => ({ name, version: '1.2.3', license, texts: [] });
  const packages = { acquire: [own('@aws-sdk/core', 'Apache-2.0')], release: [own('@aws-sdk/core', 'Apache-2.0')] };
  const text = sbom('1.0.0', { function: packages, file: { 'holdfast.mjs': [own('zod', '(MIT OR Apache-2.0)')] } });
  const { Spec, Validation } = createRequire(import.meta.url)('@cyclonedx/cyclonedx-library');
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
  expect(await validator.validate(text)).toBeNull();
  expect(await validator.validate(text.replace('"library"', '"book"'))).not.toBeNull();
});

const FOLDER = '.github/workflows';
const workflows = (await readdir(FOLDER)).map((file) => join(FOLDER, file));

const hasGo = (await run('go', ['version']).catch(() => undefined))?.exitCode === 0;
const hasActionlint = hasGo && (await run('go', ['mod', 'download'], { cwd: import.meta.dirname })).exitCode === 0;
if (!hasActionlint) console.log('skipped: no Go, or no module for it: actionlint does not check the workflows');

describe('workflows', () => {
  it('the workflows of GitHub are those that test a change and publish a release', () => {
    expect(workflows.sort()).toEqual([`${FOLDER}/ci.yml`, `${FOLDER}/release.yml`]);
  });

  it.runIf(hasActionlint)('the workflows of GitHub have no fault that actionlint finds', async () => {
    const files = workflows.map((file) => join('../..', file));
    const { exitCode, output } = await run('go', ['tool', 'actionlint', ...files], { cwd: import.meta.dirname });
    expect(exitCode, output).toBe(0);
  });

  it('the workflows of GitHub pin third-party actions by commit, and name the version', async () => {
    for (const file of workflows)
      for (const [line, action] of (await readFile(file, 'utf8')).matchAll(/^.*\buses: (\S+).*$/gm))
        if (!action?.startsWith('./')) expect(line, file).toMatch(/@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('the workflows of GitHub have only the rights that a job names', async () => {
    const texts = await Promise.all(workflows.map((file) => readFile(file, 'utf8')));
    const rights = texts.map((text) => text.match(/^permissions:(.*(?:\n {2}.*)*)/m)?.[1]);
    expect(rights).toEqual(['\n  contents: read', ' {}']);
    // A stored token can be stolen. The token of the run itself ends with the run.
    for (const text of texts) expect(text).not.toMatch(/secrets\.|NPM_TOKEN|NODE_AUTH_TOKEN/);
  });

  it('a release starts by hand, and tags the tested commit before it publishes anything', async () => {
    const text = await readFile(`${FOLDER}/release.yml`, 'utf8');
    const [, triggers = ''] = /^on:\n((?: .*\n)+)/m.exec(text) ?? [];
    expect(triggers.match(/^ {2}\w+/gm)).toEqual(['  workflow_dispatch']);
    const jobs = new Map(text.split(/^ {2}(?=\w+:\n {4})/m).map((job) => [job.split(':')[0], job]));
    const needs = (name: string) => /^ {4}needs: (.*)$/m.exec(jobs.get(name) ?? '')?.[1];
    expect(['test', 'build', 'tag', 'npm', 'pypi', 'image', 'github'].map(needs)).toEqual([
      ...['check', 'check', '[test, build]', 'tag', 'tag', 'tag', '[npm, pypi, image]'],
    ]);
    const writers = [...jobs].filter(([, job]) => job.includes('contents: write')).map(([name]) => name);
    expect(writers).toEqual(['tag', 'github']);
  });

  it('the workflows of GitHub publish each package of this repository', async () => {
    const text = await readFile(`${FOLDER}/release.yml`, 'utf8');
    const names = await Promise.all(
      ['clients/typescript', 'local', 'cli'].map(
        async (folder) => JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')).name,
      ),
    );
    expect(text).toContain(`for package in ${names.join(' ')}; do`);
    expect(text).toContain('publish --trusted-publishing always assets/holdfast_client-*');
  });
});
