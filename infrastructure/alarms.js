// The framework can include JavaScript, but not TypeScript.
export { alarms } from './alarms.ts';
