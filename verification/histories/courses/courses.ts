import { KNOWN_FAILURES } from '../known-failures.ts';
import type { FaultyService } from '../service.ts';
import { CALLER_COURSES } from './callers.ts';
import { type Course, playCourse } from './course.ts';
import { LATE_COURSES } from './late-grants.ts';
import { TASK_COURSES } from './tasks.ts';

export const COURSES: readonly Course[] = [...TASK_COURSES, ...CALLER_COURSES, ...LATE_COURSES];

/** @returns what is wrong with a course: it breaks a promise, or does not break a promise any more that it is known to break */
export async function verdictOf(course: Course, service: FaultyService): Promise<string | undefined> {
  const violations = await playCourse(course, service);
  const known = KNOWN_FAILURES.find(({ courses }) => courses.includes(course.name));
  const another = violations.find(({ promise }) => promise !== known?.promise);
  if (another) return `Broken: ${another.promise}\n  ${another.detail} (${course.name})`;
  if (!known || violations.length > 0) return undefined;
  return `A known failure is mended: take it out of verification/histories/known-failures.ts and docs/histories.md (${course.name})`;
}
