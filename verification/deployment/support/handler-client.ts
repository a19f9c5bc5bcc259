import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { Holdfast } from '../../../clients/typescript/src/index.ts';

const required = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
};

/** In place of examples/handlers/client.ts: no resolver has the name of the emulator's API, and the role of the function signs. */
export const holdfast = new Holdfast({
  endpoint: required('HOLDFAST_ENDPOINT'),
  holder: process.env.HOLDER ?? required('AWS_LAMBDA_FUNCTION_NAME'),
  region: required('AWS_REGION'),
  credentials: async () => ({
    accessKeyId: required('AWS_ACCESS_KEY_ID'),
    secretAccessKey: required('AWS_SECRET_ACCESS_KEY'),
    ...(process.env.AWS_SESSION_TOKEN && { sessionToken: process.env.AWS_SESSION_TOKEN }),
  }),
  fetch: (input, { method = 'GET', headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const url = new URL(String(input));
      const to = { host: '127.0.0.1', port: required('EMULATOR_PORT'), method, path: url.pathname + url.search };
      const sent = { ...to, headers: { ...(headers as Record<string, string>), host: url.host } };
      request({ ...sent, ...(signal && { signal }) }, async (answer) => {
        resolve(new Response(await text(answer), { status: answer.statusCode ?? 0 }));
      })
        .on('error', reject)
        .end(body ? String(body) : undefined);
    }),
});
