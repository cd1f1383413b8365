package main

import (
	"os"
	"strconv"
	"time"
)

// parentVariable tells a process started by up the process that it must not
// outlive.
const parentVariable = "CONTROLPLANE_PARENT"

// followParent calls gone when the process parent is no longer our parent. To ask
// is the only way that works on every Unix.
func followParent(parent int, gone func()) {
	for os.Getppid() == parent {
		time.Sleep(250 * time.Millisecond)
	}
	gone()
}

// followParentOfEnvironment ends this process with the one that started it, if
// that one asked for it.
func followParentOfEnvironment() {
	parent, err := strconv.Atoi(os.Getenv(parentVariable))
	if err != nil {
		return
	}
	go followParent(parent, func() { os.Exit(1) })
}
