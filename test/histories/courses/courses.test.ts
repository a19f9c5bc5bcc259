import { expect, it } from 'vitest';
import { playCourse } from '../../../verification/histories/courses/course.ts';
import { COURSES } from '../../../verification/histories/courses/courses.ts';
import { faultyService } from '../../../verification/histories/service.ts';
import { aFew } from '../../support/time/rounds.ts';

const service = await faultyService();

it.each(aFew(2, COURSES))('a course of a history breaks no promise: $name', async (course) => {
  expect(await playCourse(course, service)).toEqual([]);
});
