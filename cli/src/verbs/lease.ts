import { unlinkSync } from 'node:fs';
import type { Lease } from '../../../clients/typescript/src/lease.ts';
import { EXIT } from '../exit-codes.ts';
import { isGone, LeaseFile, readLeaseFile } from '../lease-file.ts';
import { Signals } from '../run/signals.ts';
import type { Call, Verb } from '../verb.ts';
import { ACQUIRE_OPTIONS, acquireOptions, heldExitCode, noteLimit, refusal } from './holding.ts';
import { duration } from './texts.ts';

export const acquire: Verb = {
  summary: 'acquire a lease for a script, and print the file that holds its proof',
  usage: 'KEY',
  words: [1, 1],
  takesKey: true,
  options: {
    ...ACQUIRE_OPTIONS,
    'lease-file': { value: 'FILE', help: 'a new file for the proof' },
  },
  notes:
    'The script must extend the lease by holdfast heartbeat. Prefer holdfast run, which ends the command before the lease ends.',
  example: 'lease=$(holdfast acquire nightly-report --ttl 10m)',
  async run({ arguments: args, output, connect, settings }) {
    const key = args.word(0);
    const options = acquireOptions(args);
    const heldExit = heldExitCode(args) ?? EXIT.held;
    const { endpoint, namespace } = settings();
    const signals = new Signals();
    const waiting = output.progress;
    const service = connect({ onEvent: (event) => event.type === 'waiting' && waiting.waitingFor(event) });
    const file = new LeaseFile(args.text('lease-file'));
    let lease: Lease;
    try {
      lease = await service.acquire(key, { ...options, signal: signals.waiting });
    } catch (error) {
      file.remove();
      waiting.end();
      if (signals.exitCode !== undefined) return signals.exitCode;
      const { line, code } = await refusal(service, error, { held: heldExit });
      output.note(line);
      return code;
    }
    waiting.end();
    noteLimit(output, lease);
    const { holder, fence, expiresAt } = lease;
    try {
      file.write({ endpoint, namespace, key: lease.key, leaseId: lease.leaseId });
      if (output.isJson) output.json({ key: lease.key, holder, fence, expiresAt, leaseFile: file.path });
      else output.line(file.path);
      await output.written();
    } catch (error) {
      await lease.release();
      file.remove();
      throw error;
    }
    output.note(`${key} is yours until ${expiresAt}, with the fence ${fence}`);
    return 0;
  },
};

export const heartbeat: Verb = {
  summary: 'extend a lease that a script has acquired',
  usage: 'LEASE-FILE',
  words: [1, 1],
  options: { ttl: { value: 'DURATION', help: 'how long the lease lasts from now without a heartbeat (unchanged)' } },
  example: 'holdfast heartbeat "$lease"',
  async run({ arguments: args, output, connect, settings }) {
    const { key, leaseId } = readLeaseFile(args.word(0), settings());
    const ttlSeconds = args.seconds('ttl', { min: 2, max: 86_400 });
    const grant = await connect().call('heartbeat', { key, leaseId, ...(ttlSeconds !== undefined && { ttlSeconds }) });
    const { leaseId: _, version: __, ...shared } = grant;
    if (output.isJson) output.json(shared);
    else output.line(`${key} is yours until ${grant.expiresAt} (in ${duration(grant.remainingMs)})`);
    return 0;
  },
};

export const release: Verb = {
  summary: 'release a lease that a script has acquired',
  usage: 'LEASE-FILE',
  words: [1, 1],
  options: {},
  notes: 'The exit code is 76 if the lease was lost, and 0 if the file is gone: a second release changes nothing.',
  example: 'holdfast release "$lease"',
  run: releaseByFile,
};

async function releaseByFile({ arguments: args, output, connect, settings }: Call): Promise<number> {
  const path = args.word(0);
  if (isGone(path)) {
    if (output.isJson) output.json({ leaseFile: path, released: false, reason: 'noLeaseFile' });
    else output.line(`there is nothing to release: ${path} is gone, as after a release`);
    return 0;
  }
  const { key, leaseId } = readLeaseFile(path, settings());
  const answer = await connect().call('release', { key, leaseId });
  unlinkSync(path);
  if (output.isJson) output.json(answer);
  else output.line(answer.released ? `${key} is released` : `${key} was no longer held (${answer.reason})`);
  return answer.released ? 0 : EXIT.lost;
}
