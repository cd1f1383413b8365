//go:build !linux

package main

import "syscall"

// processAttributes keep Ctrl-C in the terminal from reaching a child, since up handles it. The
// child ends with up by followParent only, so a prebuilt program may outlive a SIGKILL here.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
