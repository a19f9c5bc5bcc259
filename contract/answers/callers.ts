import * as z from 'zod/mini';
import type { MayCall, Whoami } from '../../shared/callers/whoami.ts';
import { component, flag, list, nullable, oneOf, text } from '../schema.ts';

const mayCall = component<MayCall>()(
  'MayCall',
  'Whether the caller may send a call.',
  z.strictObject({
    operation: text('The `operationId` of the call.'),
    route: text('Its method and path.'),
    allowed: nullable(flag('Whether the caller may send it. Null where only IAM knows.')),
    permission: nullable(text('The permission or scope that it needs. Null where every caller may send it.')),
  }),
);

/** The answer of a call that reads no table. */
export interface Health {
  status: 'ok';
  version: string;
}

export const healthAnswer = component<Health>()(
  'Health',
  'That the deployment answers.',
  z.strictObject({
    status: oneOf(['ok'], 'It answers.'),
    version: text('The version of the deployment.'),
  }),
);

export const whoamiAnswer = component<Whoami>()(
  'Whoami',
  'How the service knows its caller.',
  z.strictObject({
    version: text('The version of the deployment.'),
    principal: nullable(
      text('The ARN that IAM gives the caller, or the subject of its token. Null where there is none.'),
    ),
    authorizedBy: oneOf(
      ['iam', 'jwt', 'lambda', 'nobody'],
      'What let the caller in: IAM, a JWT, the permission to invoke the function, or nothing (`npm start`).',
    ),
    namespaces: nullable(
      list(
        text('A namespace.'),
        'The namespaces that the caller may name: those of its token. Null where only IAM knows.',
      ),
    ),
    calls: list(mayCall, 'Every call of the API.'),
  }),
);
