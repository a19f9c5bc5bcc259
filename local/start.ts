import { readOptions } from './options.ts';
import { HELP } from './settings.ts';
import { startStack } from './stack.ts';
import { watch } from './watch.ts';

async function main(): Promise<void> {
  const { values, number } = readOptions({
    help: { type: 'boolean', short: 'h' },
    port: { type: 'string' },
    memory: { type: 'boolean' },
    watch: { type: 'boolean' },
    durable: { type: 'string', multiple: true },
    function: { type: 'string', multiple: true },
  });
  if (values.help) return console.log(HELP);
  const port = number('port', { min: 1, max: 65_531, whole: true });
  if (values.watch) return watch(process.argv.slice(2).filter((option) => option !== '--watch'));
  await startStack({ port, memory: values.memory, durable: values.durable, functions: values.function });
}

main().catch((error: Error) => {
  console.error(`npm start: ${error.message}`);
  process.exit(1);
});
