import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Lambda lets a function run at full speed until its share of these 20 ms is used up, and then stops it until they are over. */
const PERIOD_US = 20_000;

const V1 = '/sys/fs/cgroup/cpu';
const V2 = '/sys/fs/cgroup';

/**
 * Limits the processor time of a process with a control group.
 * @returns a function that removes the group after the process has ended
 * @throws Error if this process cannot make a control group, for which it needs Linux and root
 */
export function limitCpu(pid: number, cores: number): () => void {
  const quota = Math.round(PERIOD_US * cores);
  const isV2 = existsSync(join(V2, 'cgroup.controllers'));
  const group = join(isV2 ? V2 : V1, `holdfast-bench-${pid}`);
  try {
    mkdirSync(group);
    if (isV2) writeFileSync(join(group, 'cpu.max'), `${quota} ${PERIOD_US}`);
    else {
      writeFileSync(join(group, 'cpu.cfs_period_us'), String(PERIOD_US));
      writeFileSync(join(group, 'cpu.cfs_quota_us'), String(quota));
    }
    writeFileSync(join(group, 'cgroup.procs'), String(pid));
  } catch (cause) {
    throw new Error(`no control group limits the processor time here: ${(cause as Error).message}`, { cause });
  }
  return () => rmdirSync(group);
}
