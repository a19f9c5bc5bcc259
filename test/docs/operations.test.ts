import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { alarms } from '../../infrastructure/alarms.ts';
import { PARAMETERS } from '../../infrastructure/parameters.ts';
import packageJson from '../../package.json' with { type: 'json' };

const operations = await readFile('docs/operations.md', 'utf8');
const deploy = await readFile('docs/deploy.md', 'utf8');

it('each alarm of the stack has its section in the runbook, and no other alarm has one', () => {
  const [, section = ''] = operations.match(/^## Alarms\n(.*?)^## /ms) ?? [];
  const named = [...section.matchAll(/^### (.+)$/gm)].flatMap(([, heading = '']) => heading.split(', '));
  const ids = Object.keys(alarms().Resources).map((id) => id.replace(/Alarm$/, ''));
  expect(ids.length).toBeGreaterThan(15);
  expect(named.toSorted()).toEqual(ids.toSorted());
});

it('each parameter of a deployment is in the reference, with its default', async () => {
  const rows = (await readFile('docs/configuration.md', 'utf8')).match(/^\| `.*\|$/gm) ?? [];
  for (const [name, { default: value = '', guarded }] of Object.entries(PARAMETERS)) {
    const [row = ''] = rows.filter((one) => one.split('|')[1]?.includes(`\`${name}\``));
    expect(row, name).toContain(`\`${name}\`${guarded ? ' *' : ''}`);
    expect(row.split('|')[2], name).toContain(value);
  }
});

it('the snippets for other tools name parameters that the template has, and the release of this version', () => {
  const given = [
    ...deploy.matchAll(/ParameterKey=(\w+)/g),
    ...(deploy.match(/parameters += \{(.*?)\}/s)?.[1] ?? '').matchAll(/(\w+) +=/g),
    ...(deploy.match(/new Holdfast\(.*?\{(.*?)\}/)?.[1] ?? '').matchAll(/(\w+):/g),
  ].map(([, name]) => String(name));
  expect(given.length).toBeGreaterThanOrEqual(5);
  expect(Object.keys(PARAMETERS)).toEqual(expect.arrayContaining(given));
  for (const [, version] of deploy.matchAll(/holdfast-(\d+\.\d+\.\d+)/g)) expect(version).toBe(packageJson.version);
});
