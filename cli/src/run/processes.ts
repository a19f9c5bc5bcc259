import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const isLinux = process.platform === 'linux';

interface ProcessStat {
  state: string | undefined;
  group: number;
  /** The foreground process group of its terminal. */
  foreground: number;
}

/** The stat of a process that has ended. */
const GONE: ProcessStat = { state: undefined, group: 0, foreground: 0 };

/** True if this process has a terminal, and may read from it: its process group is in the foreground. */
export function inForeground(): boolean {
  const { group, foreground } = isLinux ? statOf('self') : statByPs(process.pid);
  return group > 0 && group === foreground;
}

/** The process group of this process. */
export const ownGroup = (): number => (isLinux ? statOf('self') : statByPs(process.pid)).group;

/** True if a process is stopped, for example by Ctrl-Z. */
export const isStopped = (id: number): boolean => (isLinux ? statOf(id) : statByPs(id)).state === 'T';

/** The processes of a group that have not ended, except the guard and the process that made the group. */
export const membersOf = ([group, guard]: [group: number, guard: number]): number[] =>
  (isLinux ? membersByProc(group) : membersByPs(group)).filter((id) => id !== group && id !== guard);

function membersByProc(group: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((id) => {
      if (!id) return false;
      const stat = statOf(id);
      return stat.group === group && stat.state !== 'Z' && stat.state !== 'X';
    });
}

/** Reads the stat of a process, which follows the last bracket, because the name of the process may contain brackets. */
function statOf(id: number | 'self'): ProcessStat {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, 'utf8');
    const [state, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state, group: Number(group), foreground: Number(foreground) };
  } catch {
    return GONE;
  }
}

function statByPs(id: number): ProcessStat {
  try {
    const [state, group, foreground] = ps('-o', 'stat=,pgid=,tpgid=', '-p', String(id)).trim().split(/\s+/);
    return { state: state?.charAt(0), group: Number(group), foreground: Number(foreground) };
  } catch {
    return GONE;
  }
}

function membersByPs(group: number): number[] {
  return ps('-A', '-o', 'pid=,pgid=,stat=')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, groupOfProcess, state]) => Number(groupOfProcess) === group && !state?.startsWith('Z'))
    .map(([id]) => Number(id));
}

const ps = (...args: string[]): string => execFileSync('ps', args, { encoding: 'utf8' });
