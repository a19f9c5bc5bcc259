import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { expect, it } from 'vitest';
import { chromiumIn } from '../support/programs/browser.ts';

const executablePath = chromiumIn();

/** In a browser, because Mermaid cannot parse a diagram without one. */
it.runIf(executablePath)('The diagrams of the documentation are valid Mermaid', async () => {
  const { stdout } = await promisify(execFile)('git', ['ls-files', '*.md']);
  const diagrams: string[] = [];
  for (const file of stdout.trim().split('\n'))
    for (const [, text = ''] of (await readFile(file, 'utf8')).matchAll(/^```mermaid\n(.*?)^```/gms))
      diagrams.push(text);
  expect(diagrams.length).toBeGreaterThan(8);
  const browser = await chromium.launch({ executablePath: String(executablePath), args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage();
    await page.addScriptTag({ path: 'node_modules/mermaid/dist/mermaid.min.js' });
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
