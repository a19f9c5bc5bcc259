import { KNOWN_FAILURES } from '../known-failures.ts';
import type { FaultyService } from '../service.ts';
import { CALLER_COURSES } from './callers.ts';
import { type Course, playCourse } from './course.ts';
import { TASK_COURSES } from './tasks.ts';

export const COURSES: readonly Course[] = [...TASK_COURSES, ...CALLER_COURSES];

const isKnownFailure = (name: string): boolean => KNOWN_FAILURES.some(({ courses }) => courses.includes(name));

/** @returns what is wrong with a course: it breaks a promise, or does not break a promise any more that it is known to break */
export async function verdictOf(course: Course, service: FaultyService): Promise<string | undefined> {
  const [violation] = await playCourse(course, service);
  if (isKnownFailure(course.name))
    return violation
      ? undefined
      : `the known failure is mended: take it out of test/histories/known-failures.ts and docs/histories.md (${course.name})`;
  return violation && `Broken: ${violation.promise}\n  ${violation.detail} (${course.name})`;
}
