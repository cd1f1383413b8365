package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// followStarter calls gone when whoever started us has ended: "go run" tells its
// program nothing when it is killed, and neither does make tell "go run".
func followStarter(ctx context.Context, gone func()) {
	links := map[int]int{os.Getpid(): os.Getppid()} // process → its parent, as it should stay
	if parent, name := parentOf(os.Getppid()); name == "go" {
		if _, starter := parentOf(parent); starter == "make" {
			links[os.Getppid()] = parent
		}
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for child, parent := range links {
			now, _ := parentOf(child)
			if child == os.Getpid() {
				now = os.Getppid()
			}
			if now != parent {
				gone()
				return
			}
		}
	}
}

// parentOf returns the parent of a process, and the name of the process itself,
// where there is a /proc to ask. Elsewhere the name is empty.
func parentOf(pid int) (parent int, name string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	// PID (NAME) STATE PARENT …, where the name may have anything in it.
	line := string(text)
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return 0, ""
	}
	var state string
	if _, err := fmt.Sscan(line[end+1:], &state, &parent); err != nil {
		return 0, ""
	}
	return parent, line[open+1 : end]
}
