// Package proc starts, drains and stops child processes. It is the only package of the module that uses os/exec.
//
// Every child leads its own process group, and no process of that group survives [Process.Stop] or [Run]. A descendant
// that leaves the group (setsid) cannot be reached. If claudeless itself is killed, a guard process ends the group. In
// the first half millisecond, before the guard is up, a child of [Start] only gets the end of its input, a child of
// [Run] is killed together with claudeless (on Linux), and a child of [StartJob] can wait for the guard.
package proc
