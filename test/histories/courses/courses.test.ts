import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { COURSES, verdictOf } from '../../../verification/histories/courses/courses.ts';
import { KNOWN_FAILURES } from '../../../verification/histories/known-failures.ts';
import { faultyService } from '../../../verification/histories/service.ts';
import { aFew } from '../../support/time/rounds.ts';

const service = await faultyService();

it.each(aFew(2, COURSES))('a course of a history ends as it is known to end: $name', async (course) => {
  expect(await verdictOf(course, service)).toBeUndefined();
});

it('each known failure names courses that are played', () => {
  const names = COURSES.map(({ name }) => name);
  for (const { courses } of KNOWN_FAILURES) expect(names).toEqual(expect.arrayContaining(courses));
});

it('docs/histories.md names each known failure', async () => {
  const [, section = ''] = (await readFile('docs/histories.md', 'utf8')).split('## Known failures\n');
  const listed = section.split('\n## ')[0]?.match(/^- .*(\n {2}.*)*/gm) ?? [];
  expect(listed.map((one) => one.slice(2).replaceAll(/\s+/g, ' '))).toEqual(
    KNOWN_FAILURES.map(({ failure }) => failure),
  );
});
