/**
 * A script for a shell that runs its arguments, the guard with the command, as the foreground job of the terminal, in a process group of
 * its own: only a shell can hand a terminal over, and Node cannot. When the job is stopped, as by Ctrl-Z, it gives the terminal back, says so
 * on descriptor 4, and goes on once it is answered: `fg` with the terminal, or `bg` without.
 *
 * The job ignores the signals of the terminal, and the guard stops it when the command has stopped. A status from 145 to 150 is that of
 * a stopped job, on every system. The terminal must be descriptor 2, because Bash takes descriptor 2 for the terminal.
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
