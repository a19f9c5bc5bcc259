// The framework includes JavaScript, and no TypeScript.
export { defaults } from './parameters.ts';
