import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Listening, listen } from '../../../local/listen.ts';

/** The keys that a fake source gives. */
export interface FakeKeys {
  id: string;
  /** Epoch milliseconds. */
  expiresAt: number;
}

/** A fake source of AWS credentials. */
export interface FakeSource extends Listening {
  /** The paths that were asked for, with their methods. */
  asked: string[];
}

async function source(
  answer: (request: IncomingMessage & { path: string }, response: ServerResponse) => void,
): Promise<FakeSource> {
  const asked: string[] = [];
  const server = await listen((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    asked.push(`${request.method} ${path}`);
    answer(Object.assign(request, { path }), response);
  });
  return { ...server, asked };
}

const json = (response: ServerResponse, body: object, status = 200) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
};

const inCapitals = ({ id, expiresAt }: FakeKeys) => ({
  ...{ Code: 'Success', AccessKeyId: id, SecretAccessKey: 'secret', Token: `token of ${id}` },
  Expiration: new Date(expiresAt).toISOString().replace(/\.\d+/, ''),
});

/** The endpoint of ECS or of EKS Pod Identity, which demands an authorization token. */
export const containerEndpoint = (authorization: () => string, keys: () => FakeKeys): Promise<FakeSource> =>
  source(({ headers }, response) => {
    if (headers.authorization !== authorization()) return json(response, { Code: 'AccessDenied' }, 403);
    json(response, inCapitals(keys()));
  });

/** The metadata service of an EC2 instance, which answers no request without a session token (IMDSv2). */
export const instanceMetadata = (keys: () => FakeKeys): Promise<FakeSource> =>
  source(({ method, path, headers }, response) => {
    if (method === 'PUT' && path === '/latest/api/token') return void response.end('session');
    if (headers['x-aws-ec2-metadata-token'] !== 'session') return json(response, {}, 401);
    const role = '/latest/meta-data/iam/security-credentials/';
    if (path === role) return void response.end('worker');
    if (path === `${role}worker`) return json(response, inCapitals(keys()));
    json(response, {}, 404);
  });

/** STS, which gives keys for a role. @param expected fields that its form must have */
export const sts = (expected: Record<string, string>, keys: () => FakeKeys): Promise<FakeSource> =>
  source(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const form = new URLSearchParams(text);
    const action = form.get('Action') ?? '';
    const wrong = Object.keys(expected).find((name) => form.get(name) !== expected[name]);
    response.writeHead(wrong ? 403 : 200, { 'content-type': 'text/xml' });
    const { id, expiresAt } = keys();
    const fields = { AccessKeyId: id, SecretAccessKey: 'secret', SessionToken: `token of ${id}` };
    const given = Object.entries({ ...fields, Expiration: new Date(expiresAt).toISOString() });
    response.end(
      wrong
        ? `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>${wrong} is wrong</Message></Error></ErrorResponse>`
        : `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result><Credentials>${given
            .map(([name, value]) => `<${name}>${value}</${name}>`)
            .join('')}</Credentials></${action}Result></${action}Response>`,
    );
  });

/** The portal of IAM Identity Center, which gives keys for the token of a login. */
export const ssoPortal = (bearer: string, keys: () => FakeKeys): Promise<FakeSource> =>
  source(({ headers }, response) => {
    if (headers['x-amz-sso_bearer_token'] !== bearer) {
      response.setHeader('x-amzn-errortype', 'UnauthorizedException');
      return json(response, { message: 'Session token not found or invalid' }, 401);
    }
    const { id, expiresAt } = keys();
    const fields = { accessKeyId: id, secretAccessKey: 'secret', sessionToken: `token of ${id}` };
    json(response, { roleCredentials: { ...fields, expiration: expiresAt } });
  });
