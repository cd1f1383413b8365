package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/gitsource/hub"
)

func newPlan() *cobra.Command {
	var r reading
	var output string
	var in outlookInput
	cmd := &cobra.Command{
		Use:   "plan PATH|REPO@REF",
		Short: "Print what a checkout would do: which clusters get which objects; offline",
		Long: `Plan reads a directory as the daemon reads a commit, and prints the decision on
every cluster for every placement, and what each cluster would hold in the end.
It asks no cluster and no daemon. PATH and REPO@REF are as for validate.

Without --clusters every declared member counts as healthy, with the properties
that are declared and no others. With --current the clusters of an earlier plan
count as held, and what would change is printed first.

Exit codes: 0 fine, 1 with --current if the plan differs from it, 2 error.`,
		Example: `  gitfleet plan .
  gitfleet plan . -o json > before.json
  gitfleet get clusters -o yaml > clusters.yaml
  gitfleet plan . --clusters clusters.yaml --current before.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %s: use text or json", output)
			}
			s, err := r.read(cmd.Context(), cmd.Flags(), args[0])
			if err != nil {
				return tellUnread(cmd.OutOrStdout(), args[0], output, err)
			}
			o, err := in.about(s)
			if err != nil {
				return err
			}
			return o.tell(cmd.OutOrStdout(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	in.bind(cmd.Flags())
	r.bind(cmd.Flags())
	return cmd
}

// tellUnread says why there is no plan. Whoever reads JSON wants to know by
// fields what is wrong.
func tellUnread(w io.Writer, what, output string, err error) error {
	var bad *hub.LoadError
	if !errors.As(err, &bad) {
		return err
	}
	if output == "json" {
		d := planDocument{APIVersion: planVersion, Problems: describeProblems(bad.Problems)}
		if err := writeJSON(w, d.filled()); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s does not load:\n%w", what, bad)
}

// tell writes the plan. The exit code says whether an earlier one differs.
func (o *outlook) tell(w io.Writer, output string) error {
	d := o.describe()
	changes := compare(o.before, d)
	err := writePlan(w, d, changes, output)
	if err == nil && !changes.none() {
		return exitCode(exitDifferences)
	}
	return err
}

func writePlan(w io.Writer, d planDocument, changes planChanges, output string) error {
	if output == "json" {
		return writeJSON(w, d)
	}
	return printPlan(w, d, changes)
}
