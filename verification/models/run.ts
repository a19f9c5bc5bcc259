import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { HELP, type Model, play } from './engine/command.ts';

/** Plays a model. @returns whether all of it holds */
type Player = (args: string[]) => boolean;

const playing =
  (model: Model): Player =>
  (args) =>
    play(model, args);

const MODELS: Record<string, () => Promise<Player>> = {
  bound: async () => (await import('./bound/play.ts')).playBound,
  keys: async () => playing((await import('./keys/model.ts')).KEYS),
  leases: async () => playing((await import('./leases/model.ts')).LEASES),
  permits: async () => playing((await import('./permits/model.ts')).PERMITS),
};

const [name = '', ...args] = process.argv.slice(2);
const load = MODELS[name];
if ([name, ...args].some((arg) => arg === '--help' || arg === '-h')) console.log(HELP);
else if (load) process.exitCode = (await load())(args) ? 0 : 1;
else {
  // Each of them keeps one core busy.
  const codes = Object.keys(MODELS).map(async (model) => {
    const played = [import.meta.filename, model, ...process.argv.slice(2)];
    const [code] = await once(spawn(process.execPath, played, { stdio: 'inherit' }), 'exit');
    return code;
  });
  process.exitCode = (await Promise.all(codes)).every((code) => code === 0) ? 0 : 1;
}
