import { expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { askWithin, type Looked, NOTHING_ENDED, newQuestions } from '../../shared/locks/executions/questions.ts';

const due = { key: 'k', lookedAt: 0, questionCount: 5 };
/** Looks at a few keys, one after the other. @returns how many questions each look might ask */
async function looks(questions: ReturnType<typeof newQuestions>, look: () => Promise<Looked>, keys = 3) {
  const allowed: number[] = [];
  for (let nth = 0; nth < keys; nth++)
    await askWithin(questions, due, (maxQuestions) => {
      allowed.push(maxQuestions);
      return look();
    });
  return { allowed, isCutShort: questions.isCutShort };
}

it('a look may ask no more questions than its run has left', async () => {
  const few = { ...newQuestions(), holders: 7 };
  expect(await looks(few, async () => NOTHING_ENDED)).toEqual({ allowed: [5, 2], isCutShort: true });
  expect(await looks(newQuestions(), async () => NOTHING_ENDED)).toEqual({ allowed: [5, 5, 5], isCutShort: false });
});

it('a run stops asking once AWS has throttled a question', async () => {
  const throttled = async () => {
    throw new HoldfastError('Throttled', 'too many questions');
  };
  expect(await looks(newQuestions(), throttled, 1)).toEqual({ allowed: [5], isCutShort: true });
  expect(await looks(newQuestions(), throttled, 3)).toEqual({ allowed: [5], isCutShort: true });
});
