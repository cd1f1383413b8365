// Command gitfleet keeps a fleet of Kubernetes clusters as a Git repository
// says: the daemon, and the command line that plans and asks it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes, the same for every command.
const (
	exitFine        = 0 // done, or nothing to do
	exitDifferences = 1 // there is something to look at: differences, problems
	exitError       = 2 // it could not be done
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintln(errOut, "gitfleet: "+err.Error())
		return exitError
	}
}

// An exitCode ends a command that has said all there is to say.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "gitfleet",
		Short: "Keep a fleet of Kubernetes clusters as a Git repository says",
		Long: `gitfleet reads placements and manifests from a Git repository, decides which
member clusters get what, rolls it out gradually, and keeps it there.

Exit codes: 0 done, or yes; 1 the answer is no: differences, warnings, not yet; 2 error.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		newRun(), newValidate(), newRender(), newPlan(), newExplain(),
		newStatus(), newGet(), newDescribe(), newTree(), newEvents(), newHistory(), newWait(),
		newSuspend(), newResume(), newSync(), newRollback(), newDrift(), newDiff(), newTrace(), newKubeconfig(), newState(),
		newBugReport(), newVersion(),
	)
	completeNames(root)
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		},
	}
}

// release is set by the linker for a release.
var release string

// version says which gitfleet this is: the release, or the commit it was built
// from.
func version() string {
	if release != "" {
		return "gitfleet " + release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "gitfleet (unknown)"
	}
	text := "gitfleet " + info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += " " + s.Value
		}
	}
	return text + " " + info.GoVersion
}
