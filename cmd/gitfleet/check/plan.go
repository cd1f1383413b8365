package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/plantext"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/member"
)

// NewPlan returns the command plan.
func NewPlan() *cobra.Command {
	var r offline.Reader
	var out output.Format
	var in offline.Input
	var at client.Connection
	var pullRequest int64
	cmd := &cobra.Command{
		Use:   "plan PATH|REPO@REF|REPO@FROM..TO",
		Short: "Show which clusters would get which objects; offline",
		Long: `Plan reads a directory as the daemon reads a commit, and prints the decision on
every cluster for every placement, and the objects that each cluster would have.
It asks no cluster and no daemon. PATH and REPO@REF are as for validate.

Without --clusters every declared member counts as healthy, with the properties
that are declared and no others.

With --current the plan is compared with an earlier one, and with REPO@FROM..TO
the commit TO with the commit FROM: placements count as bound to the clusters
that they have there, and renamed placements are recognized. The changes are
printed first, with the objects that would be deleted and the deletions that the
daemon would block until a commit allows them. Of two commits the plan also says
which objects would be recreated, as gitfleet.dev/recreate asks, and warns of
indexes in patches that mean another item of a list than before.

With --without the plan shows what would move where if clusters were lost or
drained: it is that of the fleet without them, compared with --current or,
without that, with the plan for all clusters.

With --pr the daemon is asked for the plan of an open pull request, compared
with the fleet as it is. The comment there may show only a part of it.

Exit codes: 0 no differences from an earlier plan, 1 there are some, 2 error.`,
		Example: `  gitfleet plan .
  gitfleet plan . -o json > ../before.json
  gitfleet plan https://git.example.com/fleet@v1.0..main
  gitfleet get clusters -o yaml > ../clusters.yaml
  gitfleet plan . --clusters ../clusters.yaml --current ../before.json
  gitfleet plan . --without paris
  gitfleet plan --pr 17`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("pr") {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("pr") {
				if !out.IsText() || in != (offline.Input{}) {
					return errors.New("--pr prints text, and does not go with -o, --clusters, --current and --without")
				}
				return printPullRequestPlan(cmd.Context(), &at, cmd.OutOrStdout(), pullRequest)
			}
			var s *hub.Snapshot
			var err error
			if in.Base, s, err = r.ReadChange(cmd.Context(), cmd.Flags(), args[0]); err != nil {
				return printUnread(cmd.OutOrStdout(), args[0], out, err)
			}
			o, err := in.Forecast(s)
			if err != nil {
				return err
			}
			return writeForecast(cmd.OutOrStdout(), o, out, r.DeletionLimit)
		},
	}
	out.Bind(cmd.Flags(), "text")
	in.Bind(cmd.Flags())
	r.Bind(cmd.Flags())
	cmd.Flags().StringVar(&in.Without, "without", "", "member clusters, separated by commas: what would go where without them")
	cmd.Flags().Int64Var(&pullRequest, "pr", 0, "number of an open pull request: ask the daemon for its plan")
	at.Bind(cmd.Flags())
	return cmd
}

// printUnread prints why there is no plan; in JSON with fields.
func printUnread(w io.Writer, what string, out output.Format, err error) error {
	var bad *hub.LoadError
	if !errors.As(err, &bad) {
		return err
	}
	if !out.IsText() {
		if err := out.Write(w, forecast.NotLoaded(bad.Problems)); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s does not load:\n%w", what, bad)
}

// writeForecast writes the plan. The exit code says whether it differs from an earlier one.
func writeForecast(w io.Writer, o *forecast.Forecast, out output.Format, limit member.DeletionLimit) error {
	if why := o.Refusal(); why != "" {
		return fmt.Errorf("the commit would be refused: %s", why)
	}
	d, changes := o.Compared(limit)
	err := out.Print(w, d, func() string { return plantext.Plan(d, changes) })
	if err == nil && (!changes.None() || len(d.Recreations) > 0) {
		return exit.Attention
	}
	return err
}

// printPullRequestPlan requests the plan of a pull request from the daemon, and prints it.
func printPullRequestPlan(ctx context.Context, at *client.Connection, w io.Writer, number int64) error {
	daemon, err := at.Client()
	if err != nil {
		return err
	}
	var p plantext.PullRequest
	if err := daemon.Get(ctx, "/plan", url.Values{"pullRequest": {strconv.FormatInt(number, 10)}}, &p); err != nil {
		return err
	}
	if _, err := io.WriteString(w, p.Text); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	switch {
	case p.Failed:
		return exit.Failed
	case p.Changes:
		return exit.Attention
	}
	return nil
}
