// The framework includes JavaScript, and no TypeScript.
export { alarms } from './alarms.ts';
