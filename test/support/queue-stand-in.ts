import { SendTaskFailureCommand, SendTaskSuccessCommand, type SFNClient } from '@aws-sdk/client-sfn';
import type { LambdaHandler } from '../../local/lambda.ts';
import type { Trigger } from '../../local/service-events.ts';
import { lambdaContext } from './doors.ts';
import type { leaseWorld } from './leases.ts';

interface Parked {
  taskToken: string;
  execution: string;
  deadline: number;
  plain: { key: string };
}

/**
 * The contract of a parked acquire, kept in memory over the handlers of plain leases: what state machines are promised,
 * without the queue that promises it.
 */
export function queueStandIn({ handlers }: Awaited<ReturnType<typeof leaseWorld>>, sfn: () => SFNClient) {
  const parked: Parked[] = [];
  const held = new Map<string, { key: string; leaseId: string }[]>();
  const targets = new Map<string, string>();
  const call = (name: 'acquire' | 'release', event: unknown) => handlers[name](event, lambdaContext());

  const acquire: LambdaHandler = async (event) => {
    const {
      taskToken,
      execution,
      parkSeconds = 3600,
      target,
      ...plain
    } = event as Record<string, string> & { key: string };
    if (target) targets.set(String(execution), target);
    if (!taskToken) return granted(plain, String(execution));
    const ticket = {
      taskToken,
      execution: String(execution),
      deadline: Date.now() + Number(parkSeconds) * 1000,
      plain,
    };
    if (!(await send(ticket))) parked.push(ticket);
    return { parked: true };
  };
  const granted = async (plain: object, execution: string) => {
    const grant = (await call('acquire', plain)) as { key: string; leaseId: string };
    held.set(execution, [...(held.get(execution) ?? []), grant]);
    return grant;
  };
  /** False where the lease is held. */
  const send = async ({ taskToken, execution, plain }: Parked): Promise<boolean> => {
    const grant = await granted(plain, execution).catch((error: Error) => {
      if (error.name !== 'LeaseHeld') throw error;
    });
    if (!grant) return false;
    const gone = await sfn()
      .send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify(grant) }))
      .then(
        () => false,
        () => true,
      );
    if (gone) await release({ key: grant.key, leaseId: grant.leaseId }, lambdaContext());
    return true;
  };
  const release: LambdaHandler = async (event) => {
    const { key, leaseId } = event as { key: string; leaseId: string };
    const released = await call('release', { key, leaseId });
    const next = parked.findIndex(({ plain }) => plain.key === key);
    const [ticket] = next < 0 ? [] : parked.splice(next, 1);
    if (ticket) await send(ticket);
    return released;
  };
  const executionEnded: LambdaHandler = async (event) => {
    const { executionArn } = (event as { detail: { executionArn: string } }).detail;
    for (const ticket of parked.filter(({ execution }) => execution === executionArn))
      parked.splice(parked.indexOf(ticket), 1);
    for (const lease of held.get(executionArn) ?? []) await release(lease, lambdaContext());
  };
  /** What repair does with tickets past their deadline. */
  const expire = async () => {
    for (const { taskToken } of parked.splice(0))
      await sfn().send(new SendTaskFailureCommand({ taskToken, error: 'LeaseHeld', cause: '{"code":"LeaseHeld"}' }));
  };
  const triggers: Record<string, Trigger[]> = {
    executionEnded: [
      {
        kind: 'pattern',
        pattern: { source: ['aws.states'], detail: { status: ['SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED'] } },
      },
    ],
  };
  return { handlers: { acquire, release, executionEnded }, triggers, expire, targets, waiting: () => parked.length };
}
