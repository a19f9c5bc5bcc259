/** An alias. Its text `name:branch` is the partition key of all its items. */
export interface Alias {
  name: string;
  branch: string;
}

const DEFAULT_BRANCH = 'main';

/** A text without a colon means the branch `main`. @returns undefined if a part is empty or there is a second colon */
export function parseAlias(text: string): Alias | undefined {
  const [name, branch = DEFAULT_BRANCH, ...rest] = text.split(':');
  return name && branch && rest.length === 0 ? { name, branch } : undefined;
}

export const aliasText = ({ name, branch }: Alias): string => `${name}:${branch}`;
