/**
 * The leader of the command's process group: it leaves a guard in the group, says both of their numbers on descriptor 3,
 * and becomes the command. The guard reads the same descriptor, whose other end this process holds alone. When this
 * process ends in any way, the guard kills the group. It is no child of the command, which may wait for all it has.
 */
export const LEADER = `(
  (trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 ALRM; read -r end <&3; kill -KILL 0) </dev/null >/dev/null 2>&1 &
  echo "$$ $!" >&3
)
exec 3<&-
exec "$@"`;

/**
 * Runs the leader as the foreground job of the terminal, in a process group of its own: only a shell can hand a terminal
 * over, and Node cannot. When the command is stopped, as by Ctrl-Z, it gives the terminal back, says so on descriptor 4,
 * and goes on once it is answered: \`fg\` with the terminal, or \`bg\` without.
 *
 * A status from 145 to 150 is that of a stopped job, on every system, or of a command that exits with it and leaves no job.
 * The terminal must be descriptor 2, where Bash looks for it. Other shells would take the command's death by SIGINT for
 * their own, and keep the terminal, if they did not catch it.
 */
export const TERMINAL_JOB = `leader=$1
shift
exec 5>&2 2>/dev/tty
[ "$BASH_VERSION" ] || trap : INT QUIT
set -m
/bin/sh -c "$leader" holdfast "$@" 2>&5 4>&- 5>&-
status=$?
while [ $status -ge 145 ] && [ $status -le 150 ] && jobs %1 >/dev/null 2>&1; do
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
done
exit $status`;
