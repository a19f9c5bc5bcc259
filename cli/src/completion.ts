import { optionsOf } from './arguments.ts';
import type { Verb } from './verb.ts';

type Verbs = Record<string, Verb>;

/**
 * What may stand in place of the last word, and what each means. Nothing where a file may stand there, or a word that only the caller knows.
 * @param words those behind `holdfast`
 */
export function candidates(words: readonly string[], verbs: Verbs): [word: string, help: string][] {
  const [name = '', ...rest] = words;
  const names = Object.entries(verbs).map(([verb, { summary }]): [string, string] => [verb, summary]);
  if (rest.length === 0) return [...names, ['help', 'show the options of a verb']];
  if (name === 'help') return rest.length === 1 ? names : [];
  const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  if (!verb) return [];
  const options = optionsOf(verb);
  const [before = '', word = ''] = [rest.at(-2), rest.at(-1)];
  const choices = before.startsWith('--') && options[before.slice(2)]?.choices;
  if (choices) return choices.map((choice) => [choice, '']);
  return word.startsWith('-') ? Object.entries(options).map(([option, { help }]) => [`--${option}`, help]) : [];
}

/** Each script asks the command what may stand there; behind -- stands a command, which is completed as if it stood alone. */
export const SCRIPTS = {
  bash: `_holdfast() {
  local at word=\${COMP_WORDS[COMP_CWORD]}
  for ((at = 1; at < COMP_CWORD; at++)); do
    [[ \${COMP_WORDS[at]} == -- ]] || continue
    if declare -F _command_offset >/dev/null; then _command_offset $((at + 1)); else COMPREPLY=($(compgen -A command -f -- "$word")); fi
    return
  done
  COMPREPLY=($(compgen -W "$(holdfast completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" | cut -f 1)" -- "$word"))
  [[ $COMPREPLY ]] || COMPREPLY=($(compgen -f -- "$word"))
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
  local -a found
  found=("\${(@f)$(holdfast completion words -- "\${(@)words[2,CURRENT]}")}")
  found=("\${(@)found//:/\\\\:}")
  found=("\${(@)found/$'\\t'/:}")
  if [[ -n $found ]]; then _describe word found; else _files; fi
}
if [ "$funcstack[1]" = _holdfast ]; then _holdfast "$@"; else compdef _holdfast holdfast; fi`,
  fish: `complete -c holdfast -e
complete -c holdfast -n 'not contains -- -- (commandline -opc)' -a '(holdfast completion words -- (commandline -opc)[2..] (commandline -ct))'
complete -c holdfast -f -n __fish_use_subcommand`,
};
