import { CALLER_COURSES } from './callers.ts';
import type { Course } from './course.ts';
import { LATE_COURSES } from './late-grants.ts';
import { TASK_COURSES } from './tasks.ts';

export const COURSES: readonly Course[] = [...TASK_COURSES, ...CALLER_COURSES, ...LATE_COURSES];
