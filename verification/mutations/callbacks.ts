// biome-ignore-all lint/suspicious/noTemplateCurlyInString: source text of the product, searched and replaced
import { type Change, change, type Mutation } from './mutation.ts';

const shown = (name: string, changes: Change[], test: string): Mutation => ({
  name,
  changes,
  test: { file: 'test/leases/line.test.ts', name: test },
});

/** Ways to break the line for durable functions (docs/protocols/tasks.md#callbacks). */
export const CALLBACKS: Mutation[] = [
  shown(
    'a callback that is gone to a second run of its submitter loses its grant',
    [change("if (outcome === 'gone' && !repeated) await lock", "if (outcome === 'gone') await lock")],
    'a callback that is submitted again after its grant keeps the grant, and the second ticket is gone',
  ),
  shown(
    'a callback that Lambda does not find counts as unanswered',
    [change('CALLBACK_GONE.has(name) || $metadata?.httpStatusCode === 404', 'CALLBACK_GONE.has(name)')],
    'a grant to a callback that is missing goes to the next waiter',
  ),
  shown(
    'the SDK sends a message to a callback again',
    [
      change(
        'attempt(lambda.client, { command, tooLate: onlyOnce() }, call)',
        'attempt(lambda.client, { command }, call)',
      ),
      change('maxAttempts: 1,', 'maxAttempts: 3,', 'shared/aws/step-functions.ts'),
    ],
    'a refused message to a callback leaves the ticket and the grant, and the repair sends the message again',
  ),
  shown(
    'each run of a submitter is a request of its own',
    [change("`c-${createHash('sha256').update(callbackId).digest('base64url')}`", '`c-${Math.random()}`')],
    'a callback that is submitted again after its grant keeps the grant, and the second ticket is gone',
  ),
  shown(
    'the error data of a callback has no code',
    [
      change(
        'ErrorData: JSON.stringify(message.problem),',
        'ErrorData: JSON.stringify({ ...message.problem, code: undefined }),',
      ),
    ],
    'a callback whose wait is over fails with LeaseHeld',
  ),
  shown(
    'a call that shares the request of a callback deletes its ticket',
    [
      change(
        'attribute_not_exists(task_token) AND attribute_not_exists(callback_id)',
        'attribute_not_exists(task_token)',
      ),
    ],
    'a call of the same request that receives the grant leaves the ticket',
  ),
];
