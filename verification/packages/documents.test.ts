import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { expect, it } from 'vitest';
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
