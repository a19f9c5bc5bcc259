/** `deploy.mjs` of a release exports these for the command `holdfast`. */
export { deployCommand } from './command.ts';
export { historyCommand } from './history-command.ts';
export { liftFencesCommand } from './lift-fences-command.ts';
export { drainCommand, parametersCommand, resumeCommand } from './stage-commands.ts';
