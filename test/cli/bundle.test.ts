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
])('no name that the build shortens in the %s is one of the contract, of a verb or of an option', (_, names) => {
  const foreign = wireNames(document);
  for (const [name, verb] of Object.entries(VERBS))
    for (const one of [name, ...Object.keys(optionsOf(verb))]) foreign.add(one);
  expect(foreign.size).toBeGreaterThan(100);
  expect(names.split(' ').filter((name) => foreign.has(name))).toEqual([]);
});
