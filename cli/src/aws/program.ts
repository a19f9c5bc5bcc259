import { fileURLToPath } from 'node:url';

/** The path of the program that searches for AWS credentials. The build changes it to SEARCH_FILE. */
export const SEARCH_PROGRAM = fileURLToPath(new URL('./main.ts', import.meta.url));
