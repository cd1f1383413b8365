// Command tally runs go test, prints each package when it ends and each test that fails, and counts
// the tests:
//
//	go run ./test/tally go test -json ./... -- go -C test/other test -json ./...
//
// Several commands, separated by --, run one after the other, also after one
// that fails. The last lines have the failed tests and the sum. The exit code is 1 if anything failed.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
)

func main() {
	t := newTally(os.Stdout)
	ok := true
	for args := os.Args[1:]; len(args) > 0; {
		end := slices.Index(args, "--")
		if end < 0 {
			end = len(args)
		}
		if err := t.run(args[:end]); err != nil {
			fmt.Fprintf(os.Stderr, "tally: %v\n", err)
			ok = false
		}
		args = args[min(end+1, len(args)):]
	}
	t.sum()
	if !ok || t.failed > 0 {
		os.Exit(1)
	}
}

// run counts the tests of one command.
func (t *tally) run(args []string) error {
	before := t.failed
	command := exec.Command(args[0], args[1:]...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	if err := t.read(out); err != nil {
		return err
	}
	// Failed tests have been printed already.
	if err := command.Wait(); err != nil && t.failed == before {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}
