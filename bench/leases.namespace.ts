import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import { preparedFunction } from './functions.ts';
import { type Contestant, playPairs, type Samples } from './pairs.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

export interface NamespaceTask {
  repetitions: number;
  /** How many pairs of acquire and release each contestant runs in a repetition. */
  pairs: number;
  /** How many pairs each contestant runs before the counted ones. */
  warmUp: number;
}

export type NamespaceName = 'whole' | 'namespace' | 'token';
export type NamespaceResult = Record<NamespaceName, Samples>[];

const task = await receiveTask<NamespaceTask>();
const asked = { holder: 'bench', ttlSeconds: 60 };
const iam = { iam: { userArn: 'arn:aws:iam::000000000000:user/bench', accountId: '000000000000' } };
const jwt = {
  jwt: { claims: { sub: 'bench', scope: 'holdfast/leases', holdfast_namespace: '[team-b team-a]' }, scopes: null },
};

/** Calls the function as the gateway does for a route in a namespace. */
async function contestant(authorizer: object, namespace?: string): Promise<Contestant> {
  const toRoute = (event: APIGatewayProxyEventV2): APIGatewayProxyEventV2 => {
    const inNamespace = (text: string, name: string) => (namespace ? text.replace('/v1/', `/v1/ns/${name}/`) : text);
    return {
      ...event,
      routeKey: inNamespace(event.routeKey, '{ns}'),
      rawPath: inNamespace(event.rawPath, `${namespace}`),
      requestContext: Object.assign({ ...event.requestContext }, { authorizer }),
    };
  };
  const acquire = await preparedFunction('leases/acquire', toRoute);
  const release = await preparedFunction('leases/release', toRoute);
  return {
    acquire: (key) => acquire.prepare({ key, ...asked }),
    leaseIdOf: (granted) => acquire.read<{ leaseId: string }>(granted).leaseId,
    release: (key, leaseId) => release.prepare({ key, leaseId }),
  };
}

const contestants: Record<NamespaceName, Contestant> = {
  whole: await contestant(iam),
  namespace: await contestant(iam, 'team-a'),
  token: await contestant(jwt, 'team-a'),
};

await playPairs(contestants, task.warmUp);
const result: NamespaceResult = [];
for (let repetition = 1; repetition <= task.repetitions; repetition++) {
  sendProgress(`namespace: ${repetition} of ${task.repetitions}`);
  result.push(await playPairs(contestants, task.pairs));
}
sendResult(result);
