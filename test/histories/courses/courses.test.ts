import { expect, it } from 'vitest';
import { playCourse } from '../../../verification/histories/courses/course.ts';
import { COURSES } from '../../../verification/histories/courses/courses.ts';
import { LATE_COURSES } from '../../../verification/histories/courses/late-grants.ts';
import { faultyService } from '../../../verification/histories/service.ts';
import { aFew } from '../../support/time/rounds.ts';

const service = await faultyService();

it.each(aFew(2, COURSES))('a course of a history does not break a promise: $name', async (course) => {
  expect(await playCourse(course, service)).toEqual([]);
});

const courses = LATE_COURSES.map((course) => [course.name, course] as const);

it.each(courses)('the fences of leases rise on record in a course of a history: %s', async (_, course) => {
  expect(await playCourse(course, service)).toEqual([]);
});
