package main

import "syscall"

// processAttributes make a child deaf to the terminal's Ctrl-C, which is for us
// to handle, and have the kernel kill it when we are gone.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
