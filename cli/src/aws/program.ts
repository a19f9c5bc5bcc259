import { fileURLToPath } from 'node:url';

/** The path of the program that searches AWS keys. The build replaces this file: see SEARCH_FILE. */
export const SEARCH_PROGRAM = fileURLToPath(new URL('./main.ts', import.meta.url));
