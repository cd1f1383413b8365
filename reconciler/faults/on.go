//go:build faults

// Package faults has the places where tests kill the program. A released binary
// has none of them: they are only there with the build tag faults.
package faults

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// left counts down to the end, at the place that GITFLEET_CRASH_AT names as
// place:n.
var place, left = func() (string, *atomic.Int64) {
	place, n, _ := strings.Cut(os.Getenv("GITFLEET_CRASH_AT"), ":")
	count, _ := strconv.ParseInt(n, 10, 64)
	var left atomic.Int64
	left.Store(max(count, 1))
	return place, &left
}()

// At is a place between two writes. The program is killed there when it comes
// for the last time that it is to.
func At(here string) {
	if here == place && left.Add(-1) == 0 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
