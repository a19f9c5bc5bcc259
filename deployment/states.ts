import type { Stack } from '@aws-sdk/client-cloudformation';
import { CHANGE_CHECK } from '../infrastructure/logical-ids.ts';
import { Refusal } from './failure.ts';

const READY = /^(CREATE|UPDATE|IMPORT|UPDATE_ROLLBACK|IMPORT_ROLLBACK)_COMPLETE$/;

/** What an operator must do before a stack of this status can be deployed again. `without` is the option that leaves a resource out. */
const NEXT_STEPS: Record<string, { means: string; command: string; without?: string }> = {
  UPDATE_ROLLBACK_FAILED: {
    means: 'an update failed, and CloudFormation could not roll the update back. Remove the cause, and continue',
    command: 'continue-update-rollback',
    without: '--resources-to-skip',
  },
  UPDATE_FAILED: {
    means: 'an update failed, and was not rolled back. Roll the update back',
    command: 'rollback-stack',
  },
  DELETE_FAILED: {
    means: 'the deletion stopped at a resource. Remove the cause, and delete the stack again',
    command: 'delete-stack',
    without: '--retain-resources',
  },
  CREATE_FAILED: { means: 'the creation failed. Delete the stack', command: 'delete-stack' },
  ROLLBACK_FAILED: {
    means: 'the creation failed, and not every resource could be deleted. Remove the cause, and delete the stack',
    command: 'delete-stack',
  },
};

/** @throws Refusal with the next step if the stack cannot be deployed in its current state */
export function refuseState({ StackName, StackStatus, StackStatusReason }: Stack, region: string): void {
  const status = String(StackStatus);
  if (READY.test(status)) return;
  const reason = StackStatusReason ? ` (${StackStatusReason})` : '';
  const { means, command, without } = NEXT_STEPS[status] ?? {};
  // The change check fails if its function is gone or may not describe the stack. It keeps no data, so it can be left out.
  const hint = without ? `\nIf the resource ${CHANGE_CHECK} fails again, add ${without} ${CHANGE_CHECK}` : '';
  throw new Refusal(
    means
      ? `the stack ${StackName} is ${status}${reason}: ${means}:\n  aws cloudformation ${command} --stack-name ${StackName} --region ${region}${hint}`
      : `the stack ${StackName} is ${status}${reason}: deploy when the operation is complete`,
  );
}
