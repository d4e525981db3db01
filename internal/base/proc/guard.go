package proc

import "strconv"

// The scripts of guards wait for EOF on their input. Nothing is written to the input, so EOF means that this program has
// exited. Then killGroupScript stops the guard's own group, and killOtherGroupScript stops the group $1. Both take the same
// steps as [Process.Stop]. removeDirScript removes the directory $1. stopRunProcessesAndRemoveDirScript stops all processes
// with the base name of the directory $1 in their variable $2 (Linux), and removes the directory.
const (
	killGroupScript                    = `read -r _; sleep 0.5; trap "" TERM; kill -TERM 0; sleep 0.5; kill -KILL 0`
	killOtherGroupScript               = `read -r _; sleep 0.5; kill -s TERM -- "-$1"; sleep 0.5; kill -s KILL -- "-$1"`
	removeDirScript                    = `read -r _; rm -rf -- "$1"`
	stopRunProcessesAndRemoveDirScript = `read -r _; for s in TERM KILL; do
for e in /proc/[0-9]*/environ; do grep -qsF -- "$2=${1##*/}" "$e" && p=${e#/proc/} && kill -s $s "${p%/environ}"; done
test $s = KILL || sleep 0.5; done 2>/dev/null; rm -rf -- "$1"`
)

// startKillGuardInsideGroup starts a guard as a member of the group pgid. While the guard runs, the group id cannot be reused.
// The group must still exist: its leader was not waited for yet, or another member is running.
func startKillGuardInsideGroup(pgid int) exitCleanupGuard {
	return startExitCleanupGuard(pgid, killGroupScript)
}

// startKillGuardOutsideGroup starts a guard of the group pgid that is in another group, so that it does not count as a process
// of the group pgid. The guard does not prevent the group id from being reused. Therefore it must end shortly after the
// leader was waited for.
func startKillGuardOutsideGroup(pgid int) exitCleanupGuard {
	return startExitCleanupGuard(0, killOtherGroupScript, strconv.Itoa(pgid))
}
