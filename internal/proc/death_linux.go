package proc

import "syscall"

// dieWithParent has the system kill the child itself, not its group, when the
// thread that starts it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = sigKill }
