import type { ChildProcess } from 'node:child_process';

const children = new Set<ChildProcess>();

/** Ends the child together with this process, whatever ends it except a kill -9. Otherwise children that wait for locks would never end. */
export function endsWithUs<Child extends ChildProcess>(child: Child): Child {
  children.add(child);
  return child.once('exit', () => children.delete(child));
}

process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
