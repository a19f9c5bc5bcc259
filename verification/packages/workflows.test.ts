import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from './support/run.ts';

const FOLDER = '.github/workflows';
const workflows = (await readdir(FOLDER)).map((file) => join(FOLDER, file));

const hasGo = (await run('go', ['version']).catch(() => undefined))?.exitCode === 0;
const hasActionlint = hasGo && (await run('go', ['mod', 'download'], { cwd: import.meta.dirname })).exitCode === 0;
if (!hasActionlint) console.log('skipped: no Go, or no module for it: actionlint does not check the workflows');

describe('The workflows of GitHub', () => {
  it('the workflows of GitHub are those that test a change and publish a release', () => {
    expect(workflows.sort()).toEqual([`${FOLDER}/ci.yml`, `${FOLDER}/release.yml`]);
  });

  it.runIf(hasActionlint)('the workflows of GitHub have no fault that actionlint finds', async () => {
    const files = workflows.map((file) => join('../..', file));
    const { exitCode, output } = await run('go', ['tool', 'actionlint', ...files], { cwd: import.meta.dirname });
    expect(exitCode, output).toBe(0);
  });

  it('pin each action of others by its commit, and name the version of that commit', async () => {
    for (const file of workflows)
      for (const [line, action] of (await readFile(file, 'utf8')).matchAll(/^.*\buses: (\S+).*$/gm))
        if (!action?.startsWith('./')) expect(line, file).toMatch(/@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('the workflows of GitHub have no rights but those that a job names', async () => {
    const texts = await Promise.all(workflows.map((file) => readFile(file, 'utf8')));
    const rights = texts.map((text) => text.match(/^permissions:(.*(?:\n {2}.*)*)/m)?.[1]);
    expect(rights).toEqual(['\n  contents: read', ' {}']);
    // A stored token can be stolen. The token of the run itself ends with the run.
    for (const text of texts) expect(text).not.toMatch(/secrets\.|NPM_TOKEN|NODE_AUTH_TOKEN/);
  });

  it('publish each package of this repository', async () => {
    const text = await readFile(`${FOLDER}/release.yml`, 'utf8');
    const names = await Promise.all(
      ['client', 'cli'].map(async (folder) => JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')).name),
    );
    expect(text).toContain(`for package in ${names.join(' ')}; do`);
  });
});
