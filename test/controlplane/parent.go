package main

import (
	"os"
	"strconv"
	"time"
)

// parentVariable is the environment variable with the PID of the parent, set for processes that
// must not outlive up.
const parentVariable = "CONTROLPLANE_PARENT"

// followParent calls gone when the process parent is no longer our parent. Polling is the only
// method that works on every Unix.
func followParent(parent int, gone func()) {
	for os.Getppid() == parent {
		time.Sleep(250 * time.Millisecond)
	}
	gone()
}

// followParentOfEnvironment ends this process with its parent, if the parent asked for it.
func followParentOfEnvironment() {
	parent, err := strconv.Atoi(os.Getenv(parentVariable))
	if err != nil {
		return
	}
	go followParent(parent, func() { os.Exit(1) })
}
