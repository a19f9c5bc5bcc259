/** The file of the build that searches AWS keys. It stands beside the command. */
export const SEARCH_FILE = 'credentials.mjs';
