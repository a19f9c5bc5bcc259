import type { Call } from '../../aws/call.ts';

// Calls on permits go to their pool, and all others on. What only pools need is loaded for the former alone. Each call has a file, so that the
// function of one does not bundle the others.

export type Run<Input, Answer> = (input: Input, call: Call) => Promise<Answer>;
