// Command gitfleet reconciles a fleet of Kubernetes clusters with a Git repository: the daemon,
// and its command line.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes, the same for every command.
const (
	exitFine        = 0 // done, or nothing to do
	exitDifferences = 1 // something needs attention: differences, problems
	exitError       = 2 // it could not be done
)

func main() {
	errOut := os.Stderr
	silenceLibraries()
	os.Exit(run(os.Args[1:], os.Stdout, errOut))
}

// silenceLibraries keeps libraries from writing to standard error directly:
// kustomize does so with warnings that name no file, and the hub reports those
// with file and line. A crash is still written there.
func silenceLibraries() {
	log.SetOutput(withoutKustomize{os.Stderr})
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		os.Stderr = null
	}
}

// withoutKustomize drops the lines that kustomize logs about its variables, since they
// may contain values of Secrets. Other lines are written.
type withoutKustomize struct{ io.Writer }

// Write implements io.Writer for one line.
func (w withoutKustomize) Write(line []byte) (int, error) {
	for _, known := range []string{"well-defined vars that were never replaced", "MakePrimitiveReplacer: bad replacement"} {
		if bytes.Contains(line, []byte(known)) {
			return len(line), nil
		}
	}
	return w.Writer.Write(line)
}

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
	case isUnknownName(err):
		fmt.Fprintln(errOut, "gitfleet: "+err.Error())
		return exitDifferences
	default:
		fmt.Fprintln(errOut, "gitfleet: "+err.Error())
		return exitError
	}
}

// An exitCode ends a command that has printed everything.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "gitfleet",
		Short: "Keep a fleet of Kubernetes clusters as a Git repository says",
		Long: `gitfleet reads placements and manifests from a Git repository, decides which
member clusters get which objects, rolls changes out gradually, and corrects
drift.

Exit codes: 0 success; 1 there is something to look at, such as differences,
warnings or a failed rollout, or the condition is not met yet; 2 error.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddGroup(commandGroups...)
	grouped(root, groupFleet, newStatus(), newGet(), newDescribe(), newTree(), newEvents(), newHistory(), newExplain(), newDrift(), newProposals(), newTrace())
	grouped(root, groupOperate, newSync(), newWait(), newSuspend(), newResume(), newRollback(), newAdoptFleet())
	grouped(root, groupRepository, newInit(), newValidate(), newPlan(), newRender(), newDiff())
	grouped(root, groupDaemon, newRun(), newMember(), newDoctor(), newKubeconfig(), newState(), newBugReport())
	root.AddCommand(newVersion())
	root.InitDefaultCompletionCmd()
	checkArguments(root)
	completeNames(root)
	root.SetFlagErrorFunc(flagError)
	arrangeHelp(root)
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

// version returns the version of gitfleet: the release, or the commit it was built from.
func version() string {
	if release != "" {
		return "gitfleet " + release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "gitfleet (unknown)"
	}
	text := "gitfleet " + info.Main.Version
	if revision := revisionOf(info); revision != "" {
		text += " " + revision
	}
	return text + " " + info.GoVersion
}

// revisionOf returns the commit that a program was built from; empty if it is not known.
func revisionOf(info *debug.BuildInfo) string {
	i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	if i < 0 {
		return ""
	}
	return info.Settings[i].Value
}
