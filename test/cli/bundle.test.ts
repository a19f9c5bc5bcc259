import { readdir, readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { OWN_OF_PAGE, OWN_OF_VERBS } from '../../cli/bundle.ts';
import { optionsOf } from '../../cli/src/arguments.ts';
import { VERBS } from '../../cli/src/verbs.ts';
import document from '../../contract/openapi.json' with { type: 'json' };

/** The names of all fields in the contract, and of all parameters. */
function wireNames(part: unknown, names = new Set<string>()): Set<string> {
  if (typeof part !== 'object' || part === null) return names;
  const { properties, in: place, name } = part as { properties?: object; in?: string; name?: string };
  for (const one of Object.keys(properties ?? {})) names.add(one);
  if (place && name) names.add(name);
  for (const child of Object.values(part)) wireNames(child, names);
  return names;
}

it.each([
  ['verbs', OWN_OF_VERBS],
  ['page', OWN_OF_PAGE],
])('the build of the %s keeps the names of contract, verbs and options', (_, names) => {
  const foreign = wireNames(document);
  for (const [name, verb] of Object.entries(VERBS))
    for (const one of [name, ...Object.keys(optionsOf(verb))]) foreign.add(one);
  expect(foreign.size).toBeGreaterThan(100);
  expect(names.split(' ').filter((name) => foreign.has(name))).toEqual([]);
});

const PAGE = 'console/page';

/** The attributes and handlers that the templates of the page give to elements of the browser. */
async function attributes(): Promise<Set<string>> {
  const names = new Set<string>();
  for (const file of (await readdir(PAGE)).filter((name) => name.endsWith('.ts'))) {
    const code = await readFile(`${PAGE}/${file}`, 'utf8');
    for (const { 1: name = '', index } of code.matchAll(/\s([a-zA-Z-]+)=(?:\$\{|")/g)) {
      const [tag] = code.slice(0, index).match(/<(?:\$\{|[a-z])(?!.*<(?:\$\{|[a-z]))/s) ?? [];
      if (tag && tag !== '<${') names.add(name);
    }
  }
  return names;
}

it('the build of the page keeps the attributes and handlers of elements', async () => {
  const foreign = await attributes();
  for (const name of ['onClick', 'onChange', 'class', 'aria-label']) expect(foreign).toContain(name);
  expect(OWN_OF_PAGE.split(' ').filter((name) => foreign.has(name))).toEqual([]);
});
