import { type Change, change, type Mutation } from './mutation.ts';

const shown = (name: string, changes: Change[], [file, test]: [file: string, name: string]): Mutation => ({
  ...{ name, changes, test: { file: `test/${file}.test.ts`, name: test } },
});

/** Ways to break the leases of durable functions in the client, and the double that they run over. */
export const DURABLE: Mutation[] = [
  shown(
    'the client names the request of a callback anew in each run of the submitter',
    [change("const own = 'callbackId' in request && { requestId: undefined };", 'const own = {};')],
    [
      'client/durable',
      'the client names no request when it parks a callback, so that all runs of the submitter are one request',
    ],
  ),
  shown(
    'a durable lease is not released when its body fails',
    [change('    await release();\n    throw error;', '    throw error;', 'client/src/durable.ts')],
    ['durable/with-lease', 'A body that fails releases its lease, and its error reaches the caller'],
  ),
  shown(
    'a durable lease repeats the request that a full line refused',
    [
      change(
        "(error.code === 'QueueFull' && (request",
        "(error.code === 'LeaseHeld' && (request",
        'client/src/attempt.ts',
      ),
    ],
    [
      'durable/with-lease',
      'QueueFull reaches the handler at once, and with a new callback the same execution waits in line',
    ],
  ),
  shown(
    'a durable lease uses any key as the name of an operation',
    [change('.slice(0, 256)', '', 'client/src/durable.ts')],
    ['durable/with-lease', 'An execution holds the lease of a key that has 1,024 bytes'],
  ),
  shown(
    'a durable lease keeps only the code of a problem',
    [
      change(
        'throw new HoldfastError({ ...(problem as object), code, detail }, error);',
        'throw new HoldfastError({ code, detail }, error);',
      ),
    ],
    ['client/durable', 'withLease of a durable function throws the problem of the service with all of its fields'],
  ),
  shown(
    'a callback of the local stack takes a second answer',
    [change("if (!callback || isOver(callback) || this.status !== 'RUNNING')", 'if (!callback)')],
    ['durable/double', 'A callback resumes the execution with its result as text, and takes one answer'],
  ),
];
