import { fileURLToPath } from 'node:url';

/** The arguments with which Node runs the guard. The build replaces the path of the program with its text. */
export const GUARD_ARGS = [fileURLToPath(new URL('./main.ts', import.meta.url))];
