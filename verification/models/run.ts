import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { HELP } from './engine/states.ts';

/** The function of each model that plays it by the options of the command line. @returns whether all of it holds */
const MODELS: Record<string, (args: string[]) => Promise<boolean>> = {
  bound: async (args) => (await import('./bound/play.ts')).playBound(args),
  locks: async (args) => (await import('./locks/model.ts')).playLocks(args),
  places: async (args) => (await import('./places/model.ts')).playPlaces(args),
  once: async (args) => (await import('./once/model.ts')).playOnce(args),
  rates: async (args) => (await import('./rates/model.ts')).playRates(args),
};

const [name = '', ...args] = process.argv.slice(2);
const played = MODELS[name];
if ([name, ...args].some((arg) => arg === '--help' || arg === '-h')) console.log(HELP);
else if (played) process.exitCode = (await played(args)) ? 0 : 1;
else {
  // each process keeps one core busy
  const codes = Object.keys(MODELS).map(async (model) => {
    const command = [import.meta.filename, model, ...process.argv.slice(2)];
    const [code] = await once(spawn(process.execPath, command, { stdio: 'inherit' }), 'exit');
    return code;
  });
  process.exitCode = (await Promise.all(codes)).every((code) => code === 0) ? 0 : 1;
}
