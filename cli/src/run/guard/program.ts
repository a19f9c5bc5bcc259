import { fileURLToPath } from 'node:url';

/** What makes Node the guard of a command. The build puts the text of the program in place of its path. */
export const GUARD_ARGS = [fileURLToPath(new URL('./main.ts', import.meta.url))];
