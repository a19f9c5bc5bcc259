/**
 * A script for a shell that runs its arguments, which are the guard, as the foreground job of the terminal in a process group of its own. It is a script for a
 * shell because Node cannot hand over a terminal.
 *
 * When the job is stopped, for example by Ctrl-Z, the shell takes the terminal back, writes a line to descriptor 4, and reads the answer from there: `fg`
 * continues the job with the terminal, and `bg` without it.
 *
 * The job ignores the signals of the terminal, and the guard stops the job when the command has stopped. A status from 145 to 150 means a stopped job, on every
 * system. Descriptor 2 must be the terminal, because that is where Bash expects it.
 */
export const TERMINAL_JOB = `exec 6>&2 2>/dev/tty
set -m
(
  trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 ALRM
  "$@" 2>&6 4>&- 6>&-
  exit
)
status=$?
while [ $status -ge 145 ] && [ $status -le 150 ]; do
  set +m
  echo stopped >&4
  read -r how <&4 || exit 137
  case $how in
    fg)
      set -m
      fg %1 >/dev/null
      status=$?
      ;;
    *)
      bg %1 >/dev/null 2>&1 || { set -m; bg %1 >/dev/null; }
      wait %1
      exit
      ;;
  esac
done`;
