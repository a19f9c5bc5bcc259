import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { expect, it } from 'vitest';
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
