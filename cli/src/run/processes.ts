import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const isLinux = process.platform === 'linux';

interface ProcessStat {
  state: string | undefined;
  group: number;
  /** The foreground group of its terminal. */
  foreground: number;
}

/** Whether this process has a terminal, and may read it now: its process group is the foreground one. */
export function inForeground(): boolean {
  const { group, foreground } = isLinux ? statOf('self') : statByPs();
  return group > 0 && group === foreground;
}

/** The processes of a group that have not ended. */
export function membersOf(group: number): number[] {
  if (!isLinux) return membersByPs(group);
  return readdirSync('/proc')
    .map(Number)
    .filter((id) => {
      if (!id) return false;
      const stat = statOf(id);
      return stat.group === group && stat.state !== 'Z' && stat.state !== 'X';
    });
}

/** The name of a process may hold anything, and ends at the last bracket. */
function statOf(id: number | 'self'): ProcessStat {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, 'utf8');
    const [state, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state, group: Number(group), foreground: Number(foreground) };
  } catch {
    return { state: undefined, group: 0, foreground: 0 }; // it has ended
  }
}

function statByPs(): ProcessStat {
  const [group, foreground] = ps('-o', 'pgid=,tpgid=', '-p', String(process.pid)).trim().split(/\s+/);
  return { state: undefined, group: Number(group), foreground: Number(foreground) };
}

function membersByPs(group: number): number[] {
  return ps('-A', '-o', 'pid=,pgid=,stat=')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, own, state]) => Number(own) === group && !state?.startsWith('Z'))
    .map(([id]) => Number(id));
}

const ps = (...args: string[]): string => execFileSync('ps', args, { encoding: 'utf8' });
