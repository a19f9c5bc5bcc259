import { PARAMETERS } from '../infrastructure/parameters.ts';
import { Issuer } from './issuer.ts';
import { readOptions } from './options.ts';

const HELP = `npm run token: prints a token that npm start accepts under AUTH=jwt.

  --sub NAME          the caller; the service refuses a token without a subject
  --namespace NAME    a namespace of the caller; may be repeated
  --scope NAME        a scope; may be repeated. The scopes of a deployment:
${Object.entries(PARAMETERS)
  .filter(([name]) => name.endsWith('Scope'))
  .map(
    ([, { default: scope, description }]) =>
      `                        ${String(scope).padEnd(22)} ${description.replace(/^auth=jwt: /, '')}`,
  )
  .join('\n')}
  --seconds NUMBER    how long the token is valid (3600)

For example:
  TOKEN=$(npm run -s token -- --sub ann --namespace team-a --scope holdfast/leases)
  curl -s http://127.0.0.1:3000/v1/ns/team-a/leases -H "authorization: Bearer $TOKEN"`;

async function main(): Promise<void> {
  const { values, number } = readOptions({
    sub: { type: 'string' },
    namespace: { type: 'string', multiple: true },
    scope: { type: 'string', multiple: true },
    seconds: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) return console.log(HELP);
  const { sub, namespace: namespaces = [], scope: scopes = [] } = values;
  const claim = process.env.JWT_NAMESPACE_CLAIM || String(PARAMETERS.jwtNamespaceClaim?.default);
  const claims = {
    ...(sub !== undefined && { sub }),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    ...(namespaces.length > 0 && { [claim]: namespaces.length === 1 ? namespaces[0] : namespaces }),
  };
  const issuer = await Issuer.of();
  console.log(await issuer.token(claims, number('seconds', { min: 1, whole: true })));
}

main().catch((error: Error) => {
  console.error(`npm run token: ${error.message}`);
  process.exit(1);
});
