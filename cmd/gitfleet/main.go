// Command gitfleet reconciles a fleet of Kubernetes clusters with a Git repository: the daemon,
// and its command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/check"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/compare"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/daemon"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/diagnostics"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/lock"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/membership"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/operate"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/version"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/view"
)

func main() {
	errOut := os.Stderr
	silenceLibraries()
	os.Exit(int(run(os.Args[1:], os.Stdout, errOut)))
}

// silenceLibraries keeps libraries from writing to standard error: kustomize writes warnings
// without file names there, and the hub reports the same with file and line. A crash is still
// written there.
func silenceLibraries() {
	log.SetOutput(output.LibraryLog(output.NewWriter(os.Stderr)))
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		os.Stderr = null
	}
}

func run(args []string, out, errOut io.Writer) exit.Code {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(output.NewWriter(out))
	stderr := output.NewWriter(errOut)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var code exit.Code
	switch {
	case err == nil:
		return exit.OK
	case errors.As(err, &code):
		return code
	case client.IsUnknownName(err):
		fmt.Fprintln(stderr, "gitfleet: "+err.Error())
		return exit.Attention
	default:
		fmt.Fprintln(stderr, "gitfleet: "+err.Error())
		return exit.Failed
	}
}

// newRoot returns the command gitfleet.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "gitfleet",
		Short: "Keep a fleet of Kubernetes clusters in the state of a Git repository",
		Long: `gitfleet reads placements and manifests from a Git repository, decides which
member clusters get which objects, rolls changes out gradually, and corrects
drift.

Exit codes: 0 success; 1 there is something to look at, such as differences,
warnings or a failed rollout, or the condition is not met yet; 2 error.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddGroup(commandGroups...)
	grouped(root, groupFleet, view.NewStatus(), view.NewGet(), view.NewDescribe(), view.NewTree(), view.NewEvents(), view.NewHistory(), view.NewExplain(), view.NewDrift(), view.NewProposals(), view.NewTrace())
	grouped(root, groupOperate, operate.NewSync(), operate.NewWait(), operate.NewSuspend(), operate.NewResume(), operate.NewFreeze(), operate.NewUnfreeze(), operate.NewApprove(), operate.NewEvict(), operate.NewDrain(), operate.NewUncordon(), operate.NewRollback(), operate.NewAdoptFleet())
	grouped(root, groupRepository, membership.NewInit(), lock.New(), check.NewValidate(), check.NewPlan(), check.NewRender(), compare.NewDiff())
	grouped(root, groupDaemon, daemon.NewRun(), membership.NewMember(), diagnostics.NewDoctor(), operate.NewKubeconfig(), daemon.NewState(), diagnostics.NewBugReport())
	root.AddCommand(newVersion())
	root.InitDefaultCompletionCmd()
	checkArguments(root)
	completeNames(root)
	root.SetFlagErrorFunc(flagError)
	arrangeHelp(root)
	return root
}

// newVersion returns the command version.
func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.String())
			return err
		},
	}
}
