import { describe, expect, it } from 'vitest';
import { GUARD } from '../../infrastructure/logical-ids.ts';
import { configured, released, template } from '../support/stack/template.ts';

/**
 * What is deployed changes only on purpose: the template must be the one that template.summary.txt describes. When it
 * is meant to differ, write the summary again, and read the difference before you commit it:
 *
 *     npx vitest run test/deployment/template.test.ts --update
 */
const SUMMARY = './template.summary.txt';

describe('the template', () => {
  it('the template is the stored one, and so is what parameters make of it', async () => {
    const usual = linesOf(template);
    const other = linesOf(configured);
    const summary = [
      '# The template that `npm run release` writes.',
      ...linesOf(released),
      '',
      '# With the parameters of test/support/stack/template.ts CloudFormation makes of it, instead of:',
      ...without(usual, other).map((line) => `- ${line}`),
      '# it makes:',
      ...without(other, usual).map((line) => `+ ${line}`),
      '',
    ];
    await expect(summary.join('\n')).toMatchFileSnapshot(SUMMARY);
  });
});

it('the template is within the quotas of CloudFormation, with room for a release or two', () => {
  const { Parameters = {}, Resources, Outputs } = released;
  expect(Object.keys(Resources).length).toBeLessThan(450); // of 500
  expect(Object.keys(Parameters).length).toBeLessThan(150); // of 200
  expect(Object.keys(Outputs).length).toBeLessThan(150); // of 200
  expect(JSON.stringify(released).length).toBeLessThan(900_000); // of 1,048,576 bytes
  for (const [name, { Description }] of Object.entries(Parameters))
    expect(String(Description).length, name).toBeLessThanOrEqual(4000);
});

const without = (lines: string[], others: string[]): string[] => {
  const known = new Set(others);
  return lines.filter((line) => !known.has(line));
};

/**
 * The template, part by part: a line for each part that is short enough to be read, and for a long one its parts. What
 * is the same as an earlier long part names that one.
 */
function linesOf(of: object): string[] {
  const known = new Map<string, string>();
  const linesAt = (place: string, value: unknown): string[] => {
    const text = normalForm(value);
    if (text.length <= MAX_LINE || typeof value !== 'object' || value === null) return [`${place} ${text}`];
    const same = known.get(text);
    if (same) return [`${place} = ${same}`];
    known.set(text, place);
    return sorted(value).flatMap(([name, part]) => linesAt(`${place}.${name}`, part));
  };
  const { Resources = {}, ...others } = JSON.parse(JSON.stringify(of, withoutGuard)) as Record<string, object>;
  return [Resources, others].flatMap((section) => sorted(section).flatMap(([id, value]) => linesAt(id, value)));
}

const MAX_LINE = 300;

/** Every resource depends on the guard (test/deployment/guard.test.ts). One other id is written as text or as a list. */
function withoutGuard(key: string, value: unknown): unknown {
  if (key === 'ZipFile') return 'CODE';
  if (key !== 'DependsOn' || !Array.isArray(value)) return value;
  const others = value.filter((id) => id !== GUARD);
  return others.length > 1 ? others : others[0];
}

const sorted = (value: object): [string, unknown][] =>
  Array.isArray(value)
    ? value.map((part, index) => [String(index), part])
    : Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));

/** JSON with sorted keys, without what a change of code changes. */
function normalForm(value: unknown): string {
  const sortKeys = (_key: string, part: unknown) =>
    part && typeof part === 'object' && !Array.isArray(part) ? Object.fromEntries(sorted(part)) : part;
  return JSON.stringify(value, sortKeys)
    .replaceAll(/-[0-9a-f]{16}\.zip/g, '-HASH.zip')
    .replaceAll(/Holdfast \d+\.[\w.-]+:/g, 'Holdfast VERSION:');
}
