// Package proc starts, drains and stops child processes.
//
// Its one invariant: every child leads a process group of its own and nothing
// of that group outlives [Process.Stop] or [Run], however stubborn it is. It
// must not know what is spoken over the pipes. It is the only package of the
// module that uses os/exec.
//
// A descendant that leaves the group (setsid) is out of reach. When this
// program itself is killed, a guard in the group ends it. Until the guard is
// up, in the first half millisecond, what [Start] started sees nothing but the
// end of its input; what [Run] started dies with this program (on Linux); what
// [StartJob] started can wait for it.
package proc
