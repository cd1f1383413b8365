// Package exit has the exit codes of the commands.
package exit

import "fmt"

// The exit codes, the same for every command.
const (
	OK        Code = 0 // success, or nothing to do
	Attention Code = 1 // there is something to look at, such as differences or problems
	Failed    Code = 2 // the command failed
)

// A Code is the error of a command that has already printed everything.
type Code int

func (c Code) Error() string { return fmt.Sprintf("exit code %d", int(c)) }
