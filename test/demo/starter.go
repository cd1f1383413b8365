package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// followStarter calls gone when the process that started the demo has ended: "go run" does not
// signal its program when it is killed, and make does not signal "go run".
func followStarter(ctx context.Context, gone func()) {
	links := map[int]int{os.Getpid(): os.Getppid()} // process → its parent, which must not change
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

// parentOf returns the parent of a process, and the name of the process itself, from /proc.
// Without /proc the name is empty.
func parentOf(pid int) (parent int, name string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	// PID (NAME) STATE PARENT …; NAME may contain any character
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
