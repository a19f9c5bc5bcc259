import { allowanceOf, type Guarded, type GuardedChange, guardedChanges } from '../../shared/guarded.ts';

/** A request of CloudFormation to the resource `ChangeGuard`. */
export interface GuardRequest {
  RequestType: 'Create' | 'Update' | 'Delete';
  RequestId: string;
  StackId: string;
  LogicalResourceId: string;
  PhysicalResourceId?: string;
  /** Presigned. The response is one PUT. */
  ResponseURL: string;
  ResourceProperties: GuardProperties;
  OldResourceProperties?: GuardProperties;
}

type GuardProperties = Guarded & { allowChange?: string };

/** How long a response may take, in milliseconds. */
const RESPONSE_MS = 10_000;

/** CloudFormation reads at most 4096 bytes of a response. In characters. */
const MAX_REASON = 2000;

/**
 * Fails an update of the stack that would change a guarded parameter, unless `allowChange` names the parameter with its new value.
 * All other resources of the template depend on the guard, so they have not changed yet.
 * @throws Error if CloudFormation does not take the response. Lambda then calls again
 */
export async function handler(request: GuardRequest): Promise<void> {
  const reason = (await refusalOf(request))?.slice(0, MAX_REASON);
  const { RequestType: type, StackId, RequestId, LogicalResourceId, PhysicalResourceId = StackId } = request;
  const Status = reason === undefined ? 'SUCCESS' : 'FAILED';
  console.log(JSON.stringify({ message: 'guarded parameters were compared', type, Status, reason }));
  const response = { Status, Reason: reason, StackId, RequestId, LogicalResourceId, PhysicalResourceId };
  const { ok, status } = await fetch(request.ResponseURL, {
    method: 'PUT',
    // The URL is signed without a content type, and fetch adds none to bytes.
    body: Buffer.from(JSON.stringify(response)),
    signal: AbortSignal.timeout(RESPONSE_MS),
  });
  if (!ok) throw new Error(`CloudFormation did not take the response: ${status}`);
}

/** @returns why the update is refused; undefined if the guard has no objection */
async function refusalOf(request: GuardRequest): Promise<string | undefined> {
  const { RequestType, ResourceProperties: after, OldResourceProperties: before, StackId } = request;
  if (RequestType !== 'Update' || !before) return undefined;
  const allowed = (after.allowChange ?? '').split(' ');
  const refused = guardedChanges(before, after).filter(
    (change) => change.name === 'stage' || !allowed.includes(allowanceOf(change)),
  );
  if (refused.length === 0) return undefined;
  // A rollback returns to what was accepted. Its request looks like that of an update that forgets a parameter.
  return isRolledBack(StackId).then(
    (isReturn) => (isReturn ? undefined : reasonFor(refused)),
    ({ message }: Error) => `${reasonFor(refused)} The state of the stack is not known: ${message}`,
  );
}

async function isRolledBack(StackName: string): Promise<boolean> {
  // The Node of Lambda has the SDK. Most requests do not load it.
  const { CloudFormationClient, DescribeStacksCommand } = await import('@aws-sdk/client-cloudformation');
  const { Stacks = [] } = await new CloudFormationClient({}).send(new DescribeStacksCommand({ StackName }));
  return String(Stacks[0]?.StackStatus).includes('ROLLBACK');
}

function reasonFor(refused: GuardedChange[]): string {
  const changes = refused.map(({ name, from, to }) => `${name} would change from '${from}' to '${to}'.`);
  if (refused.some(({ name }) => name === 'stage'))
    return [...changes, 'The stage of a stack can never change. Nothing was changed.'].join(' ');
  return [
    ...changes,
    'Callers would use other records, and a lease could be granted twice. Nothing was changed. If a parameter was left out, give its former value.',
    `To change it, stop every caller, and set the parameter allowChange to '${refused.map(allowanceOf).join(' ')}'.`,
  ].join(' ');
}
