import { expect, it } from 'vitest';
import { playCourse } from '../../../verification/histories/courses/course.ts';
import { LATE_COURSES } from '../../../verification/histories/courses/late-grants.ts';
import { faultyService } from '../../../verification/histories/service.ts';

const service = await faultyService();

const courses = LATE_COURSES.map((course) => [course.name, course] as const);

it.each(courses)('the fences of leases rise on record in a course of a history: %s', async (_, course) => {
  expect(await playCourse(course, service)).toEqual([]);
});
