import {
  ACCEPTED_OUTPUT,
  allowanceOf,
  type CheckedParameters,
  changesToAllow,
  type ParameterChange,
} from '../../shared/fixed-parameters.ts';

/** What CloudFormation sends to the custom resource `ChangeCheck`. */
export interface CheckRequest {
  RequestType: 'Create' | 'Update' | 'Delete';
  RequestId: string;
  StackId: string;
  LogicalResourceId: string;
  PhysicalResourceId?: string;
  /** The presigned URL that takes the response, in a PUT. */
  ResponseURL: string;
  ResourceProperties: CheckProperties;
  OldResourceProperties?: CheckProperties;
}

type CheckProperties = CheckedParameters & { allowChange?: string };

const RESPONSE_MS = 10_000;

/** The addresses of CloudFormation's buckets for responses, in every AWS partition. */
const RESPONSE_ORIGINS =
  /^https:\/\/cloudformation-custom-resource-response-[a-z0-9-]+\.s3[.-]([a-z0-9-]+\.)*(amazonaws\.(com|com\.cn|eu)|c2s\.ic\.gov|sc2s\.sgov\.gov)$/;

/** The most characters of the reason, because CloudFormation reads at most 4096 bytes of a response. */
const MAX_REASON = 2000;

/**
 * Refuses an update of the stack that would change a fixed parameter or drop a limit, unless `allowChange` names the
 * parameter with its new value. CloudFormation runs the check before it changes any other resource, because all of them
 * depend on `ChangeCheck`.
 * @throws Error if CloudFormation does not accept the response, so that Lambda invokes the function again
 */
export async function handler(request: CheckRequest): Promise<void> {
  const { origin } = new URL(request.ResponseURL);
  // Without this check, a caller who may invoke the function could make it send a request anywhere. An emulator's address
  // is allowed.
  if (!RESPONSE_ORIGINS.test(origin) && origin !== process.env.AWS_ENDPOINT_URL)
    throw new Error('the response would not go to CloudFormation');
  const reason = (await refusalOf(request))?.slice(0, MAX_REASON);
  const { RequestType: type, StackId, RequestId, LogicalResourceId, PhysicalResourceId = StackId } = request;
  const Status = reason === undefined ? 'SUCCESS' : 'FAILED';
  console.log(JSON.stringify({ message: 'fixed parameters were compared', type, Status, reason }));
  const response = { Status, Reason: reason, StackId, RequestId, LogicalResourceId, PhysicalResourceId };
  const { ok, status } = await fetch(request.ResponseURL, {
    method: 'PUT',
    // A Buffer, because fetch adds a content type to a string, and the URL is signed without one.
    body: Buffer.from(JSON.stringify(response)),
    signal: AbortSignal.timeout(RESPONSE_MS),
  });
  if (!ok) throw new Error(`CloudFormation did not take the response: ${status}`);
}

/** @returns why the update is refused, or undefined if it may continue */
async function refusalOf(request: CheckRequest): Promise<string | undefined> {
  const { RequestType, ResourceProperties: after, OldResourceProperties: old, StackId } = request;
  if (RequestType !== 'Update') return undefined;
  const stack: State = await stateOf(StackId).catch(({ message }: Error) => ({ problem: message }));
  // A rollback restores accepted values, but its request looks like an update that leaves out a parameter.
  if (stack.isRollingBack) return undefined;
  const objection = objectionTo(after, old, stack.accepted);
  if (objection === undefined || stack.problem === undefined) return objection;
  return `${objection} The state of the stack is not known: ${stack.problem}`;
}

interface State {
  /** Whether CloudFormation is rolling an update back. */
  isRollingBack?: boolean;
  /** The parameters of the last successful update, each as `name=value`. */
  accepted?: string[] | undefined;
  /** Why the state is not known. */
  problem?: string;
}

async function stateOf(StackName: string): Promise<State> {
  // Lambda's Node.js includes the SDK, so the bundle leaves it out.
  const { CloudFormationClient, DescribeStacksCommand } = await import('@aws-sdk/client-cloudformation');
  const { Stacks: [stack] = [] } = await new CloudFormationClient({}).send(new DescribeStacksCommand({ StackName }));
  const output = stack?.Outputs?.find(({ OutputKey }) => OutputKey === ACCEPTED_OUTPUT)?.OutputValue;
  return {
    isRollingBack: String(stack?.StackStatus).endsWith('ROLLBACK_IN_PROGRESS'),
    accepted: output?.split(' '),
  };
}

/**
 * @param old the properties of the last request, which may have been refused
 * @param accepted the parameters of the last update that succeeded
 */
function objectionTo(after: CheckProperties, old?: CheckProperties, accepted?: string[]): string | undefined {
  if (!old?.values || !after.values) return 'The former or the new values are not known. Nothing was changed.';
  const inForce = (names: object) =>
    Object.fromEntries(accepted?.map(splitAtEquals).filter(([name]) => name in names) ?? []);
  const last = { values: inForce(after.values), limits: inForce(after.limits), defaults: old.defaults };
  const found = [...changesToAllow(old, after), ...(accepted ? changesToAllow(last, after) : [])];
  const changes = [...new Map(found.map((change) => [change.name, change])).values()];
  if (changes.length === 0) return undefined;
  const allowed = (after.allowChange ?? '').split(' ').filter((one) => one !== '');
  const refused = changes.filter((change) => change.name === 'stage' || !allowed.includes(allowanceOf(change)));
  if (refused.length > 0) return reasonFor(refused);
  const wanted = Object.entries({ ...after.values, ...after.limits }).map(([name, to]) => allowanceOf({ name, to }));
  // An entry that is left over from an earlier change would later allow the change back without a warning.
  const stale = allowed.find((one) => !wanted.includes(one));
  return (
    stale &&
    `allowChange names ${stale}, but this update does not make that change. Remove it from allowChange. Nothing was changed.`
  );
}

function splitAtEquals(text: string): [string, string] {
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}

function reasonFor(refused: ParameterChange[]): string {
  const changes = refused.map(({ name, from, to }) => `${name} would change from '${from}' to '${to}'.`);
  if (refused.some(({ name }) => name === 'stage'))
    return [...changes, 'The stage of a stack can never change. Nothing was changed.'].join(' ');
  return [
    ...changes,
    'Callers would use other records or have other rights, or a lease could be granted twice. Nothing was changed. If you left out a parameter, give its former value.',
    `To change it, stop every caller, and set the parameter allowChange to '${refused.map(allowanceOf).join(' ')}'.`,
  ].join(' ');
}
