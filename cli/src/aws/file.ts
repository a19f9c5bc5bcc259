/** The file of the build that searches for AWS credentials. It is beside the command. */
export const SEARCH_FILE = 'credentials.mjs';
