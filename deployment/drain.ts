import type { Stack, StackEvent } from '@aws-sdk/client-cloudformation';
import { paginateScan } from '@aws-sdk/client-dynamodb';
import { shown } from '../cli/src/escape.ts';
import { integer } from '../shared/aws/attributes.ts';
import { type Clock, systemClock } from '../shared/surroundings/clock.ts';
import { type Aws, timeOfAws } from './aws.ts';
import { Refusal } from './failure.ts';
import * as stacks from './stack.ts';
import { refuseState } from './states.ts';
import { stopCommand } from './stop-command.ts';
import { type BoundHolder, unexpiredIn } from './table-use.ts';

/** An acquire that began before the drain may still grant a lease. This long after the drain, all such calls have ended. */
const LONGEST_CALL_MS = 30_000;

const POLL_MS = 10_000;

const MAX_KEYS_NAMED = 5;

/** The most bound leases that are listed, one on each line. */
const MAX_BOUND_NAMED = 20;

/** How a drain reports its progress, and asks for consent. */
interface Observer {
  say(line: string): void;
  onEvent(event: StackEvent): void;
  /** Asks whether to change the stack. */
  confirm(question: string): Promise<boolean>;
}

type Named = Stack & { StackName: string };

/** @throws Refusal if there is no such stack */
export async function existingStack(aws: Aws, stage: string): Promise<Named> {
  const name = `holdfast-${stage}`;
  const { stack } = await stacks.findStack(aws, name);
  if (!stack) throw new Refusal(`there is no stack ${name} in account ${aws.account}, region ${aws.region}`);
  return { ...stack, StackName: name };
}

/** @throws Refusal if there is no such stack, or it cannot be changed now */
async function changeableStack(aws: Aws, stage: string): Promise<Named> {
  const stack = await existingStack(aws, stage);
  const now = await stacks.waitForStackCleanup(aws, stack);
  refuseState(now, aws.region);
  return { ...now, StackName: stack.StackName };
}

/**
 * Stops acquire, and waits until no lease or permit is held and no call or task waits. It does not wait for bound leases, which may last for months, or
 * for what waits behind them: it only lists them. A stage that is already drained stays drained.
 * @param timeoutMs how long to wait
 * @returns false if the operator did not confirm
 * @throws Refusal before anything is changed. Error if the stage is still in use after that time, or if only bound leases are left: acquire then
 * stays stopped
 */
export async function drain(
  aws: Aws,
  { stage, timeoutMs, clock = systemClock }: { stage: string; timeoutMs: number; clock?: Clock },
  observer: Observer,
): Promise<boolean> {
  const stack = await changeableStack(aws, stage);
  await useOf(aws, stack); // if the tables cannot be read, acquire must not be stopped
  if (!(await setDrained(aws, { stack, drained: 'true', question: 'Stop acquire?' }, observer))) return false;
  observer.say(
    `No new work begins at ${stack.StackName}: acquire, once and rates are stopped. All other calls still run, such as heartbeats`,
  );
  const endsAt = clock.now() + timeoutMs;
  observer.say(`Waiting ${LONGEST_CALL_MS / 1000} seconds for calls of acquire that are still running`);
  await clock.sleep(LONGEST_CALL_MS);
  const said = new Set<string>();
  const sayIfNew = (line: string) => {
    if (!said.has(line)) observer.say(line);
    said.add(line);
  };
  for (;;) {
    const { passing, bound } = await useOf(aws, stack);
    for (const line of bound?.lines ?? []) sayIfNew(line);
    if (passing === undefined && bound === undefined) break;
    const notDrained = `${stack.StackName} is not drained: ${passing ?? bound?.summary}. Acquire stays stopped`;
    if (passing === undefined)
      throw new Error(`${notDrained}. Stop the executions or wait until they end, and run holdfast drain again`);
    if (clock.now() >= endsAt)
      throw new Error(
        `${notDrained}. To go on waiting, run holdfast drain. To start acquire again, run holdfast resume`,
      );
    sayIfNew(`Waiting: ${passing}`);
    await clock.sleep(POLL_MS);
  }
  observer.say(`${stack.StackName} is drained. holdfast resume starts acquire again`);
  return true;
}

/**
 * Starts acquire again, with the concurrency that the stage had before.
 * @returns false if the operator did not confirm
 * @throws Refusal before anything is changed. Error if CloudFormation failed
 */
export async function resume(aws: Aws, { stage }: { stage: string }, observer: Observer): Promise<boolean> {
  const stack = await changeableStack(aws, stage);
  const { drained, acquireConcurrency } = stacks.valuesOf(stack);
  if (drained !== 'true') {
    observer.say(`${stack.StackName} is not drained`);
    if (acquireConcurrency === '0')
      observer.say('acquireConcurrency is 0: holdfast deploy --reset acquireConcurrency starts acquire again');
    return true;
  }
  if (!(await setDrained(aws, { stack, drained: 'false', question: 'Start acquire?' }, observer))) return false;
  observer.say(`Acquire of ${stack.StackName} runs again`);
  return true;
}

/** @returns false if the operator did not confirm */
async function setDrained(
  aws: Aws,
  { stack, drained, question }: { stack: Named; drained: string; question: string },
  { say, onEvent, confirm }: Observer,
): Promise<boolean> {
  const { StackName: name, Tags = [] } = stack;
  say(`Stack ${name} in account ${aws.account}, region ${aws.region}`);
  const values = stacks.valuesOf(stack);
  if (values.drained === drained) return true;
  if (values.drained === undefined)
    throw new Refusal(
      `another tool deployed the stack ${name}, so this command cannot change it. Set the parameter drained=${drained} with that tool`,
    );
  if (!(await confirm(question))) return false;
  const changeSet = await stacks.propose(aws, {
    StackName: name,
    ChangeSetType: 'UPDATE',
    UsePreviousTemplate: true,
    ...stacks.requestOf({ drained }, Tags),
    // Another deployment may have changed a value while the operator was asked.
    Parameters: Object.keys(values).map((ParameterKey) =>
      ParameterKey === 'drained' ? { ParameterKey, ParameterValue: drained } : { ParameterKey, UsePreviousValue: true },
    ),
  });
  if (changeSet) await stacks.executeChangeSet(aws, { changeSet, name }, onEvent);
  return true;
}

interface Use {
  /** What ends by itself: leases and permits with a ttl, and the calls and tasks that wait for them. */
  passing?: string;
  /** The leases and permits that end only with an execution. */
  bound?: { summary: string; lines: string[] };
}

async function useOf(aws: Aws, stack: Stack): Promise<Use> {
  const { clockSkewMs = '0' } = stacks.valuesOf(stack);
  const leases = outputOf(stack, 'LeasesTableName');
  const now = (await timeOfAws(aws, leases)) - Number(clockSkewMs);
  const { unboundCount, keys, bound } = await unexpiredIn(aws.dynamodb, leases, now);
  const waiting = await waitersIn(aws, outputOf(stack, 'WaitersTableName'), now);
  const ofBound = new Set(bound.map(({ key }) => key));
  const behind = waiting.filter((key) => ofBound.has(key)).length;
  const others = waiting.length - behind;
  const named = keys.length > 0 ? ` (${first(keys.map(shown), MAX_KEYS_NAMED).join(', ')})` : '';
  return {
    ...(unboundCount + others > 0 && {
      passing: `${unboundCount} leases or permits are held${named}, ${others} calls or tasks wait`,
    }),
    ...(bound.length > 0 && {
      bound: {
        summary: `${bound.length} leases or permits are bound to executions, and ${behind} calls or tasks wait behind them`,
        lines: first(bound.map(described), MAX_BOUND_NAMED),
      },
    }),
  };
}

function first(all: string[], max: number): string[] {
  return all.length > max ? [...all.slice(0, max), `and ${all.length - max} more`] : all;
}

function described({ key, holder, execution, acquiredAt }: BoundHolder): string {
  const since = new Date(acquiredAt).toISOString();
  const stop = stopCommand(execution) ?? shown(execution);
  return `${shown(key)} is held by ${shown(holder)} since ${since} until its execution ends. To stop the execution: ${stop}`;
}

/** The key of each task and call that may still wait. A key is listed once for each of its waiters. */
async function waitersIn({ dynamodb }: Aws, table: string, now: number): Promise<string[]> {
  const keys: string[] = [];
  const scan = {
    TableName: table,
    ConsistentRead: true,
    // Rows of executions have no deadline. A place has awake_at, and its caller cannot get the key while acquire is stopped.
    FilterExpression:
      'attribute_exists(deadline) AND attribute_not_exists(awake_at) AND (attribute_not_exists(keep_until) OR keep_until > :now)',
    ExpressionAttributeValues: { ':now': integer(now) },
    ProjectionExpression: '#key',
    ExpressionAttributeNames: { '#key': 'key' },
  };
  for await (const { Items = [] } of paginateScan({ client: dynamodb }, scan))
    for (const { key } of Items) keys.push(key?.S ?? '');
  return keys;
}

/** @throws Refusal if the stack has no such output */
export function outputOf({ StackName, Outputs = [] }: Stack, output: string): string {
  const value = Outputs.find(({ OutputKey }) => OutputKey === output)?.OutputValue;
  if (!value) throw new Refusal(`the stack ${StackName} has no output ${output}`);
  return value;
}
