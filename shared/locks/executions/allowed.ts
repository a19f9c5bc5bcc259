import type { Call } from '../../aws/call.ts';
import { invalidRequest } from '../../errors.ts';

export interface ExecutionRules {
  /**
   * Whether a caller of a namespace may name only executions of state machines whose names begin with the namespace and
   * a hyphen.
   */
  onlyOwn: boolean;
  /** A pattern for the names of the state machines that the deployment may describe. `*` stands for any text. */
  stateMachines: string;
  /**
   * A pattern for the names of the durable functions that the deployment may describe. Undefined if it may describe
   * none.
   */
  durableFunctions?: string | undefined;
  /** The beginning of the names of the deployment's own state machines. Its wrappers may always hold leases. */
  service: string | undefined;
}

export const ANY_EXECUTION: ExecutionRules = { onlyOwn: false, stateMachines: '*', service: undefined };

/**
 * Refuses executions of another account or region: the service cannot find out whether such an execution has ended, so
 * it would never free the lease, or would free it while the target runs. Refuses executions of another team too,
 * because they must not decide how long a lease of this team lasts.
 * @param named the ARNs by the fields that hold them
 * @throws HoldfastError InvalidRequest naming each field at fault
 */
export function refuseForeignExecutions(
  rules: ExecutionRules,
  named: Record<string, string | undefined>,
  call: Pick<Call, 'home' | 'namespace'>,
): void {
  const issues = Object.entries(named).flatMap(([path, arn]) => {
    const message = arn === undefined ? undefined : executionFault(rules, arn, call);
    return message === undefined ? [] : [{ path, message }];
  });
  if (issues.length > 0) throw invalidRequest(issues);
}

function executionFault(
  rules: ExecutionRules,
  arn: string,
  { home, namespace }: Pick<Call, 'home' | 'namespace'>,
): string | undefined {
  if (home !== undefined && !isAtHome(home, arn))
    return 'must be an execution in the account and region of this deployment';
  const what = isDurable(arn) ? 'durable function' : 'state machine';
  if (isDurable(arn) && rules.durableFunctions === undefined)
    return 'must be an execution of a state machine: the parameter durableFunctions of the deployment is empty';
  if (!isAllowedName(rules, arn)) return `must be an execution of a ${what} named ${patternFor(rules, arn)}`;
  const isOwn =
    namespace === undefined || (nameOf(arn).startsWith(`${namespace}-`) && !isWrapper(rules, arn, undefined));
  return !rules.onlyOwn || isOwn || isWrapper(rules, arn, namespace)
    ? undefined
    : `must be an execution of a ${what} whose name begins with ${namespace}-`;
}

/** Whether the ARN belongs to an execution of a durable function. Otherwise it belongs to Step Functions. */
export const isDurable = (arn: string): boolean => arn.split(':', 3)[2] === 'lambda';

/** Whether this deployment may describe the execution. If it may, and AWS denies access, a permission is missing. */
export const isDescribed = (rules: ExecutionRules, arn: string, { home }: Call): boolean =>
  isAtHome(home, arn) && isAllowedName(rules, arn);

/**
 * Whether the ARN is well-formed, and of the deployment's account and region. Third-party clients may write any text as
 * an ARN.
 */
function isAtHome(home: string | undefined, arn: string): boolean {
  const [, partition, , region, account, kind, machine, name, ...more] = arn.split(':');
  const isKind = kind === (isDurable(arn) ? 'function' : 'execution');
  return `${partition}:${region}:${account}` === home && isKind && !!machine && !!name && more.length === 0;
}

const nameOf = (arn: string): string => arn.split(':')[6] ?? '';

const patternFor = ({ stateMachines, durableFunctions = '' }: ExecutionRules, arn: string): string =>
  isDurable(arn) ? durableFunctions : stateMachines;

/** Compares names as IAM does: `*` stands for any text, and every other character for itself. */
function isAllowedName(rules: ExecutionRules, arn: string): boolean {
  const name = nameOf(arn);
  const pattern = patternFor(rules, arn)
    .split('*')
    .map((text) => text.replaceAll(/[^\w]/g, '\\$&'));
  return new RegExp(`^${pattern.join('.*')}$`).test(name) || isWrapper(rules, arn, undefined);
}

/**
 * Whether the ARN belongs to an `exclusive` state machine of this deployment.
 * @param namespace of this namespace, or of any if undefined
 */
function isWrapper({ service }: ExecutionRules, arn: string, namespace: string | undefined): boolean {
  const name = nameOf(arn);
  if (service === undefined || isDurable(arn)) return false;
  if (namespace !== undefined) return name === `${service}-${namespace}-exclusive`;
  // Both tests may match the same hyphen: the wrapper without a namespace is named `<service>-exclusive`.
  return name.startsWith(`${service}-`) && name.endsWith('-exclusive');
}
