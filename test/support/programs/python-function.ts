import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REGION } from '../../../infrastructure/logical-ids.ts';
import { freePort } from '../../../local/ports.ts';
import { eventually } from '../emulators/durable-functions.ts';
import { has } from './callers.ts';
import { PYTHON_CLIENT, python } from './python.ts';

/** Invokes the handler for each request, as Lambda does. */
const SERVER = `
import json, sys, types
from http.server import BaseHTTPRequestHandler, HTTPServer
from example import handler

class Invoke(BaseHTTPRequestHandler):
    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["content-length"])))
        context = types.SimpleNamespace(aws_request_id="1", function_name="billing", function_version="$LATEST",
            invoked_function_arn="arn:aws:lambda:us-east-1:000000000000:function:billing", tenant_id=None,
            client_context=None, identity=None, get_remaining_time_in_millis=lambda: 60000)
        body = json.dumps(handler(event, context)).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

HTTPServer(("127.0.0.1", int(sys.argv[1])), Invoke).serve_forever()
`;

/** Whether this machine has AWS's SDK of durable functions for Python. */
export const hasDurablePython =
  python !== undefined && (await has(python, '-c', 'import aws_durable_execution_sdk_python'));

/** The handler of a durable function in Python, in a process of its own, with this repository's client. */
export async function pythonFunction() {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-durable-python-'));
  let child: ChildProcess | undefined;
  let url = '';
  return {
    invoke: async (event: unknown) => {
      const answer = await fetch(url, { method: 'POST', body: JSON.stringify(event) });
      return answer.json();
    },
    /** @param program has the function `handler` */
    async start(program: string, { api, lambda }: { api: string; lambda: string }): Promise<void> {
      child?.kill();
      await writeFile(join(folder, 'example.py'), program);
      await writeFile(join(folder, 'server.py'), SERVER);
      const port = String(await freePort());
      url = `http://127.0.0.1:${port}`;
      child = spawn(python ?? '', ['server.py', port], {
        cwd: folder,
        env: {
          PATH: process.env.PATH,
          ...PYTHON_CLIENT,
          ...{ HOLDFAST_ENDPOINT: api, AWS_ENDPOINT_URL_LAMBDA: lambda, AWS_REGION: REGION },
          ...{ AWS_DEFAULT_REGION: REGION, AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local' },
        },
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      await eventually(() =>
        fetch(url).then(
          () => true,
          () => false,
        ),
      );
    },
    stop: async () => {
      child?.kill();
      await rm(folder, { recursive: true });
    },
  };
}
