// Package exit has the exit codes of the commands.
package exit

import "fmt"

// The exit codes, the same for every command.
const (
	OK          Code = 0 // done, or nothing to do
	Differences Code = 1 // something needs attention: differences, problems
	Failed      Code = 2 // it could not be done
)

// A Code is an error that ends a command which has printed everything.
type Code int

func (c Code) Error() string { return fmt.Sprintf("exit code %d", int(c)) }
