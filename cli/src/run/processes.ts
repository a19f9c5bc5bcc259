import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const isLinux = process.platform === 'linux';

interface Member {
  id: number;
  parent: number;
}

interface ProcessStat {
  state: string | undefined;
  parent: number;
  group: number;
  /** The foreground process group of its terminal. */
  foreground: number;
}

/** Whether this process has a terminal, and may read it now: its process group is the foreground one. */
export function inForeground(): boolean {
  const { group, foreground } = isLinux ? statOf('self') : statByPs();
  return group > 0 && group === foreground;
}

/** The processes of a group that have not ended, except the guard and its children. */
export function membersOf(group: number, guard: number | undefined): number[] {
  const members = isLinux ? membersByProc(group) : membersByPs(group);
  const guards = new Set([guard]);
  // Only the clock of the guard has started another process.
  for (const _ of [1, 2]) for (const { id, parent } of members) if (guards.has(parent)) guards.add(id);
  return members.map(({ id }) => id).filter((id) => !guards.has(id));
}

function membersByProc(group: number): Member[] {
  return readdirSync('/proc').flatMap((name) => {
    const id = Number(name);
    if (!id) return [];
    const stat = statOf(id);
    return stat.group === group && stat.state !== 'Z' && stat.state !== 'X' ? [{ id, parent: stat.parent }] : [];
  });
}

/** The name of a process may contain any character, and ends at the last bracket. */
function statOf(id: number | 'self'): ProcessStat {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, 'utf8');
    const [state, parent, group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state, parent: Number(parent), group: Number(group), foreground: Number(foreground) };
  } catch {
    return { state: undefined, parent: 0, group: 0, foreground: 0 }; // it has ended
  }
}

function statByPs(): ProcessStat {
  const [group, foreground] = ps('-o', 'pgid=,tpgid=', '-p', String(process.pid)).trim().split(/\s+/);
  return { state: undefined, parent: 0, group: Number(group), foreground: Number(foreground) };
}

function membersByPs(group: number): Member[] {
  return ps('-A', '-o', 'pid=,ppid=,pgid=,stat=')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , own, state]) => Number(own) === group && !state?.startsWith('Z'))
    .map(([id, parent]) => ({ id: Number(id), parent: Number(parent) }));
}

const ps = (...args: string[]): string => execFileSync('ps', args, { encoding: 'utf8' });
