//go:build !linux

package main

import "syscall"

// processAttributes make a child deaf to the terminal's Ctrl-C, which is for us
// to handle. That it ends with us is left to followParent, so a prebuilt program
// may outlive a SIGKILL here.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
