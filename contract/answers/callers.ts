import * as z from 'zod/mini';
import type { MayCall, Whoami } from '../../shared/lambda/whoami.ts';
import { component, flag, list, nullable, oneOf, text } from '../schema.ts';

const mayCall = component<MayCall>()(
  'MayCall',
  'A call of the API, and whether the caller may send it.',
  z.strictObject({
    operation: text('The `operationId` of the call.'),
    route: text('The method and the path of the call.'),
    allowed: nullable(flag('Whether the caller may send the call. Null if IAM decides.')),
    permission: nullable(text('The permission or the scopes that the call needs. Null if every caller may send it.')),
  }),
);

export interface Health {
  status: 'ok';
  version: string;
}

export const healthAnswer = component<Health>()(
  'Health',
  'The health of the deployment.',
  z.strictObject({
    status: oneOf(['ok'], 'The deployment answers.'),
    version: text('The version of the deployment.'),
  }),
);

export const whoamiAnswer = component<Whoami>()(
  'Whoami',
  'The authenticated caller.',
  z.strictObject({
    version: text('The version of the deployment.'),
    principal: nullable(
      text('The ARN that IAM gives the caller, or the subject of its token. Null if it has neither.'),
    ),
    authorizedBy: oneOf(
      ['iam', 'jwt', 'lambda', 'nobody'],
      'How the caller was authorized: by IAM, by a JWT, by the permission to invoke the function, or not at all (`npm start`).',
    ),
    namespaces: nullable(
      list(
        text('A namespace.'),
        'The namespaces that the token of the caller names, or the namespace whose alias a task invokes. Otherwise null.',
      ),
    ),
    calls: list(mayCall, 'Every call of the API.'),
  }),
);
