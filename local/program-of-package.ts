// In `holdfast dev`, this module replaces `program.ts`.

export const PROGRAM = 'holdfast dev';

export const BEFORE_OPTIONS = '';

export const firstStep = (url: string): string =>
  `export HOLDFAST_ENDPOINT=${url}\n  npx holdfast run hello --wait 10m -- sleep 60`;
