import { optionsOf } from './arguments.ts';
import type { Verb } from './verb.ts';

type Verbs = Record<string, Verb>;

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** A script that completes verbs, options and their values, for one of the shells. */
export const completionFor = (shell: (typeof SHELLS)[number], verbs: Verbs): string =>
  ({ bash: forBash, zsh: forZsh, fish: forFish })[shell](verbs);

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const optionNames = (verb: Verb): string =>
  Object.keys(optionsOf(verb))
    .map((name) => `--${name}`)
    .join(' ');

const choicesOf = (verbs: Verbs) =>
  Object.entries(verbs).flatMap(([name, verb]) =>
    Object.entries(optionsOf(verb)).flatMap(([option, { choices }]) => (choices ? [{ name, option, choices }] : [])),
  );

const forBash = (verbs: Verbs): string => `_holdfast() {
  local word=\${COMP_WORDS[COMP_CWORD]} verb=\${COMP_WORDS[1]} at words=
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    # Behind -- stands a command: it is completed as if it stood alone.
    if [[ \${COMP_WORDS[at]} == -- ]]; then
      if declare -F _command_offset >/dev/null; then _command_offset $((at + 1)); else COMPREPLY=($(compgen -A command -f -- "$word")); fi
      return
    fi
  done
  case "$verb:\${COMP_WORDS[COMP_CWORD - 1]}" in
${choicesOf(verbs)
  .map(({ name, option, choices }) => `    ${name}:--${option}) words='${choices.join(' ')}' ;;`)
  .join('\n')}
    *)
      if ((COMP_CWORD == 1)); then words='${Object.keys(verbs).join(' ')}'
      elif [[ $word == -* ]]; then
        case $verb in
${Object.entries(verbs)
  .map(([name, verb]) => `          ${name}) words='${optionNames(verb)}' ;;`)
  .join('\n')}
        esac
      else COMPREPLY=($(compgen -f -- "$word")); return
      fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o filenames -F _holdfast holdfast`;

/** Characters with a meaning in Zsh's list of options. */
const inZsh = (text: string): string => quoted(text.replace(/[[\]:\\]/g, '\\$&'));

const forZsh = (verbs: Verbs): string => `#compdef holdfast
_holdfast() {
  local -a verbs
  verbs=(
${Object.entries(verbs)
  .map(([name, { summary }]) => `    ${inZsh(name)}:${inZsh(summary)}`)
  .join('\n')}
  )
  if ((CURRENT == 2)); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  ((CURRENT--))
  case $verb in
${Object.entries(verbs)
  .map(([name, verb]) => {
    const options = Object.entries(optionsOf(verb)).map(([option, { value, help, choices }]) => {
      const behind = choices ? `:${value}:(${choices.join(' ')})` : value ? `:${value}:` : '';
      return `      ${quoted(`--${option}[${help.replace(/[[\]:\\]/g, '\\$&')}]${behind}`)}`;
    });
    const words = verb.takesCommand ? "'*:::command:_normal'" : "'*:file:_files'";
    return `    ${name}) _arguments -S \\\n${options.join(' \\\n')} \\\n      ${words} ;;`;
  })
  .join('\n')}
  esac
}
if [ "$funcstack[1]" = _holdfast ]; then _holdfast "$@"; else compdef _holdfast holdfast; fi`;

const forFish = (verbs: Verbs): string => {
  const lines = Object.entries(verbs).flatMap(([name, verb]) => [
    `complete -c holdfast -f -n __fish_use_subcommand -a ${quoted(name)} -d ${quoted(verb.summary)}`,
    ...Object.entries(optionsOf(verb)).map(([option, { value, short, help, choices }]) =>
      [
        `complete -c holdfast -n '__fish_seen_subcommand_from ${name}' -l ${option}`,
        ...(short ? [`-s ${short}`] : []),
        ...(choices ? [`-x -a ${quoted(choices.join(' '))}`] : value ? ['-r'] : []),
        `-d ${quoted(help)}`,
      ].join(' '),
    ),
  ]);
  return ['complete -c holdfast -e', ...lines].join('\n');
};
