/** What the clock of the deadlines is read with: on Linux one that goes on while the machine sleeps, and needs no process. */
const CLOCK =
  process.platform === 'linux' ? `IFS='. ' read -r up part _ </proc/uptime; now=$up$part` : 'now=$(date +%s)00';

/**
 * The leader of the command's process group: it leaves a guard in the group, says both of their numbers on descriptor 3,
 * and becomes the command. The guard reads the same descriptor, whose other end the wrapper holds alone. When the
 * wrapper ends in any way, the guard kills the group. It is no child of the command, which may wait for all it has.
 *
 * A child of the guard does so when the time of the lease is over, for a wrapper that is stopped. It reads the deadlines,
 * in hundredths of a second, from the file that is descriptor 4, which the wrapper makes longer. It asks the clock in
 * between, because sleep stands still while the machine sleeps.
 */
export const LEADER = `(
  (
    trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 ALRM
    (
      exec 3<&-
      while :; do
        while read -r next <&4; do deadline=$next; done
        ${CLOCK}
        left=$((deadline - now))
        [ $left -gt 0 ] || kill -KILL 0
        [ $left -lt 500 ] || left=500
        sleep $((left / 100)).$((left / 10 % 10))$((left % 10)) || sleep 1
      done
    ) &
    exec 4<&-
    read -r end <&3
    kill -KILL 0
  ) </dev/null >/dev/null 2>&1 &
  echo "$$ $!" >&3
)
exec 3<&- 4<&-
exec "$@"`;

/**
 * Runs the leader as the foreground job of the terminal, in a process group of its own: only a shell can hand a terminal
 * over, and Node cannot. When the command is stopped, as by Ctrl-Z, it gives the terminal back, says so on descriptor 5,
 * and goes on once it is answered: \`fg\` with the terminal, or \`bg\` without.
 *
 * A status from 145 to 150 is that of a stopped job, on every system, or of a command that exits with it and leaves no job.
 * The terminal must be descriptor 2, where Bash looks for it. Other shells would take the command's death by SIGINT for
 * their own, and keep the terminal, if they did not catch it.
 */
export const TERMINAL_JOB = `leader=$1
shift
exec 6>&2 2>/dev/tty
[ "$BASH_VERSION" ] || trap : INT QUIT
set -m
/bin/sh -c "$leader" holdfast "$@" 2>&6 5>&- 6>&-
status=$?
while [ $status -ge 145 ] && [ $status -le 150 ] && jobs %1 >/dev/null 2>&1; do
  set +m
  echo stopped >&5
  read -r how <&5 || exit 137
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
