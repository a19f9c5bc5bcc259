// The framework can include JavaScript, but not TypeScript.
export { defaults } from './parameters.ts';
