import { median } from '../../bench/measurement.ts';
import { readOptions } from '../../local/options.ts';
import { npmStart } from './npm-start.ts';

const HELP = `npm run verify -- start: how long npm start takes until it answers. It fails where the median is more than three seconds, which
says something on a machine that does nothing else.

  --rounds N   how many times (5)`;

const MAX_MS = 3000;

async function main(): Promise<boolean> {
  const { values, number } = readOptions({
    rounds: { type: 'string', default: '5' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  const times: number[] = [];
  for (let left = number('rounds', { min: 1, whole: true }) ?? 1; left > 0; left--) {
    const startedAt = performance.now();
    const { stop } = await npmStart();
    times.push(performance.now() - startedAt);
    await stop();
  }
  const sorted = times.toSorted((a, b) => a - b);
  const middle = median(sorted);
  console.log(`npm start answered after ${sorted.map(Math.round).join(', ')} ms, median ${Math.round(middle)} ms`);
  return middle <= MAX_MS;
}

process.exit((await main()) ? 0 : 1);
