import type { ChildProcess } from 'node:child_process';

const children = new Set<ChildProcess>();

/** Whatever ends this process short of a kill -9 ends the child too: many wait for locks, and would without end. */
export function endsWithUs<Child extends ChildProcess>(child: Child): Child {
  children.add(child);
  return child.once('exit', () => children.delete(child));
}

process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
