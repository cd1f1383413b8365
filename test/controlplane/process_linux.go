package main

import "syscall"

// processAttributes keep Ctrl-C in the terminal from reaching a child, since up handles it, and
// have the kernel kill the child when up is gone.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
