//go:build faults

// Package faults marks the positions at which tests can kill the program. They exist only with
// the build tag faults, and so not in a released binary.
package faults

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// GITFLEET_CRASH_AT has the form place:n. left counts down the calls until the program is
// killed at place.
var place, left = func() (string, *atomic.Int64) {
	place, n, _ := strings.Cut(os.Getenv("GITFLEET_CRASH_AT"), ":")
	count, _ := strconv.ParseInt(n, 10, 64)
	var left atomic.Int64
	left.Store(max(count, 1))
	return place, &left
}()

// At marks a position between two writes. It kills the program at the n-th call for the
// configured place.
func At(here string) {
	if here == place && left.Add(-1) == 0 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
