import { expect, it } from 'vitest';
import { playCourse } from '../../../verification/histories/courses/course.ts';
import { LATE_COURSES } from '../../../verification/histories/courses/late-grants.ts';
import { faultyService } from '../../../verification/histories/service.ts';

const service = await faultyService();

it.each(LATE_COURSES)('the fences of leases rise on record in a course of a history: $name', async (course) => {
  expect(await playCourse(course, service)).toEqual([]);
});
