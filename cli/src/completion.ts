import { Arguments, optionsOf } from './arguments.ts';
import { connect } from './connection.ts';
import { shown } from './escape.ts';
import type { Service } from './service.ts';
import { readSettings } from './settings.ts';
import type { Verb } from './verb.ts';
import { KINDS } from './verbs/kinds.ts';
import { keyStateText, nameOf } from './verbs/texts.ts';

type Verbs = Record<string, Verb>;
type Candidate = [word: string, help: string];

/**
 * The candidates for the last word of a command line, each with an explanation. Empty if a file may stand there, or a word that only the user knows.
 * @param words the words after `holdfast`
 */
export async function candidates(words: readonly string[], verbs: Verbs): Promise<Candidate[]> {
  const [name = '', ...rest] = words;
  const verbNames = Object.entries(verbs).map(([verb, { summary }]): [string, string] => [verb, summary]);
  if (rest.length === 0) return [...verbNames, ['help', 'show the options of a verb']];
  if (name === 'help') return rest.length === 1 ? verbNames : [];
  const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  if (!verb) return [];
  const options = optionsOf(verb);
  const [before = '', word = ''] = [rest.at(-2), rest.at(-1)];
  const option = before.startsWith('--') ? options[before.slice(2)] : undefined;
  if (option?.choices) return option.choices.map((choice) => [choice, '']);
  if (option?.takesLimit) return limitCandidates(verb, rest.slice(0, -2), word);
  if (word.startsWith('-')) return Object.entries(options).map(([one, { help }]) => [`--${one}`, help]);
  return verb.takesKey && !option?.value ? keyCandidates(verb, rest.slice(0, -1), word) : [];
}

/** How many keys are shown at most. A user would not read more. */
const MAX_KEYS = 100;

/** How long the search for keys may take, in milliseconds. */
const SEARCH_MS = 1500;

/** Candidates for the first argument of a verb: keys that begin with a prefix. */
async function keyCandidates(verb: Verb, typed: string[], prefix: string): Promise<Candidate[]> {
  const name = typed.includes('--rate') && verb.takesKey === 'once' ? 'rate' : verb.takesKey;
  const words = (service: Service, filter: { prefix?: string }) => {
    if (name === true || !name)
      return service.rows('readLeases', filter, ({ leases }) => leases.map((row): Candidate => [row.key, helpOf(row)]));
    const kind = KINDS[name];
    return service.rows(kind.operation, filter, ({ keys }) =>
      (keys as { key: string }[]).map((row): Candidate => [row.key, kind.help(row)]),
    );
  };
  return search(verb, { typed, prefix, maxWords: 0 }, words);
}

/** Candidates for the value of an option: keys that begin with a prefix, each with the limit of its holders. */
function limitCandidates(verb: Verb, typed: string[], prefix: string): Promise<Candidate[]> {
  // `run` refuses a key that is named twice, and a value that looks like an option.
  const isTyped = (key: string) =>
    key.startsWith('-') || typed.some((word) => word === key || word.startsWith(`${key}=`));
  return search(verb, { typed, prefix: prefix.replace(/=\d*$/, ''), maxWords: 1 }, (service, filter) =>
    service.rows('readLeases', filter, ({ leases }) =>
      leases.flatMap((row): Candidate[] =>
        row.limit !== null && !isTyped(row.key) ? [[`${row.key}=${row.limit}`, helpOf(row)]] : [],
      ),
    ),
  );
}

interface Typed {
  /** The words before the last word. */
  typed: string[];
  prefix: string;
  /** How many of the words may be arguments instead of options. */
  maxWords: number;
}

/** Asks the service for candidates. If the service does not answer there are none, because a completion cannot print errors. */
async function search(
  verb: Verb,
  { typed, prefix, maxWords }: Typed,
  words: (service: Service, filter: { prefix?: string }) => AsyncIterable<Candidate>,
): Promise<Candidate[]> {
  const { takesCommand: _, ...open } = verb;
  const candidates: Candidate[] = [];
  const until = performance.now() + SEARCH_MS;
  try {
    const args = new Arguments({ ...open, words: [0, 1] }, typed);
    if (args.words.length > maxWords) return [];
    const service = connect(readSettings(args), { timeoutMs: SEARCH_MS });
    for await (const [word, help] of words(service, prefix ? { prefix } : {})) {
      // Each line of the output is a candidate, so a key with a line break cannot be one.
      if (shown(word) === word) candidates.push([word, shown(help)]);
      if (candidates.length === MAX_KEYS || performance.now() > until) break;
    }
  } catch {
    // The candidates that were found before the error are shown.
  }
  return candidates;
}

function helpOf(row: Parameters<typeof keyStateText>[0] & { holder: string | null }): string {
  const state = keyStateText(row);
  return row.state === 'held' && row.holder !== null && state !== 'paused'
    ? `${state} by ${nameOf(row.holder)}`
    : state;
}

/**
 * The completion script for each shell, which asks this command for the candidates. After `--`, the user's command is completed as if it stood alone. The
 * scripts never evaluate a candidate, as `compgen -W` would, because other people choose the keys.
 */
export const SCRIPTS = {
  // Bash splits words at : and =, and replaces only the last part, so the script joins them again.
  bash: `_holdfast() {
  local at part found rest=$COMP_LINE last=\${COMP_WORDS[COMP_CWORD]} words=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    [[ \${COMP_WORDS[at]} == -- ]] || continue
    if declare -F _command_offset >/dev/null; then _command_offset $((at + 1)); else COMPREPLY=($(compgen -A command -f -- "$last")); fi
    return
  done
  for ((at = 0; at <= COMP_CWORD; at++)); do
    part=\${COMP_WORDS[at]}
    if [[ $part && $at -gt 0 && $rest == "$part"* ]]; then words[\${#words[@]}-1]+=$part; else words+=("$part"); fi
    rest=\${rest#*"$part"}
  done
  local word=\${words[\${#words[@]}-1]#[\\"\\']}
  word=\${word//\\\\/}
  words[\${#words[@]}-1]=$word
  part=\${last#[\\"\\':=]}
  local cut=\${word%"\${part//\\\\/}"}
  COMPREPLY=()
  while IFS=$'\\t' read -r found part; do
    [[ $found == "$word"* ]] && COMPREPLY+=("\${found#"$cut"}")
  done < <(holdfast completion words -- "\${words[@]:1}" 2>/dev/null)
  [[ $COMPREPLY ]] || COMPREPLY=($(compgen -f -- "$last"))
}
complete -o filenames -F _holdfast holdfast`,
  zsh: `#compdef holdfast
_holdfast() {
  local at=\${words[(i)--]}
  if ((at < CURRENT)); then
    shift at words
    ((CURRENT -= at))
    _normal
    return
  fi
  local -a found typed
  typed=("\${(@Q)words[2,CURRENT]}")
  typed[-1]=\${typed[-1]#[\\"\\']}
  found=("\${(@f)$(holdfast completion words -- "\${typed[@]}" 2>/dev/null)}")
  found=("\${(@)found//\\\\/\\\\\\\\}")
  found=("\${(@)found//:/\\\\:}")
  found=("\${(@)found/$'\\t'/:}")
  if [[ -n $found ]]; then _describe word found; else _files; fi
}
if [ "$funcstack[1]" = _holdfast ]; then _holdfast "$@"; else compdef _holdfast holdfast; fi`,
  fish: `complete -c holdfast -e
complete -c holdfast -n 'not contains -- -- (commandline -opc)' -a '(holdfast completion words -- (commandline -opc)[2..] (commandline -ct | string unescape) 2>/dev/null)'
complete -c holdfast -f -n __fish_use_subcommand`,
};
