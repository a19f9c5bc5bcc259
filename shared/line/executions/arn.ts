import * as z from 'zod/mini';
import { name } from '../../fields.ts';

const NO_EXECUTION = 'must be the ARN of an execution of a Standard workflow or of a durable function';

/**
 * The ARN of an execution of a Standard workflow or of a durable function. Step Functions sends no event at the end of an Express workflow, and does not
 * describe the execution. IAM denies a question about an ARN without both names, which looks like a missing permission. The state machine of a Map Run's child is named with the
 * label of the Map Run. The version of a durable function is never an alias.
 */
export const executionArn = () =>
  name(320).check(
    z.regex(
      /^arn:[\w-]+:(states:[\w-]+:\d{12}:execution:[^:\s]{1,121}:[^:\s]{1,80}|lambda:[\w-]+:\d{12}:function:[\w-]+:(\$LATEST(\.PUBLISHED)?|\d+)\/durable-execution\/[\w-]+\/[\w-]+)$/,
      NO_EXECUTION,
    ),
    z.refine((arn) => !/\p{Cc}/u.test(arn), NO_EXECUTION), // no part of the pattern, which every reader of the contract must be able to run
  );
