// The module that `holdfast dev` loads.
import './polyfills.ts';

export { startStack } from './stack.ts';
