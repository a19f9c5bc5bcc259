import { candidates, SCRIPTS } from './completion.ts';
import { misuse } from './failure.ts';
import type { Verb } from './verb.ts';
import { breakVerb } from './verbs/break.ts';
import { cap, next } from './verbs/cap.ts';
import { commit } from './verbs/commit.ts';
import { consoleVerb } from './verbs/console.ts';
import { deploy, drain, history, liftFences, parameters, resume } from './verbs/deploy.ts';
import { dev } from './verbs/dev.ts';
import { doctor } from './verbs/doctor.ts';
import { clean, expired, report } from './verbs/expired.ts';
import { acquire, heartbeat, release } from './verbs/lease.ts';
import { nameservice, publish } from './verbs/nameservice.ts';
import { forget } from './verbs/once.ts';
import { cancel, queue } from './verbs/queue.ts';
import { rate } from './verbs/rates.ts';
import { run } from './verbs/run.ts';
import { status } from './verbs/status.ts';
import { version } from './verbs/version.ts';
import { watch } from './verbs/watch.ts';

const SHELLS = Object.keys(SCRIPTS).join(', ');

/** This verb is here, because it completes the names of all others. */
const completion: Verb = {
  summary: `print the completion script for a shell: ${SHELLS}`,
  usage: 'SHELL',
  words: [1, 1000],
  isLocal: true,
  options: {},
  example: 'eval "$(holdfast completion bash)"',
  async run({ arguments: args }) {
    const [shell = '', ...words] = args.words;
    if (shell === 'words') {
      for (const candidate of await candidates(words, VERBS)) process.stdout.write(`${candidate.join('\t')}\n`);
      return 0;
    }
    const script = Object.hasOwn(SCRIPTS, shell) && SCRIPTS[shell as keyof typeof SCRIPTS];
    if (!script || words.length > 0) throw misuse(`the shell must be one of ${SHELLS}, not '${args.words.join(' ')}'`);
    process.stdout.write(`${script}\n`);
    return 0;
  },
};

/** Every verb, in the order of the help. */
export const VERBS: Record<string, Verb> = {
  run,
  rate,
  acquire,
  heartbeat,
  release,
  status,
  queue,
  watch,
  history,
  break: breakVerb,
  forget,
  cancel,
  cap,
  next,
  report,
  expired,
  clean,
  commit,
  publish,
  names: nameservice,
  doctor,
  dev,
  deploy,
  parameters,
  drain,
  resume,
  'lift-fences': liftFences,
  version,
  completion,
  console: consoleVerb,
};
