package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/gitsource/hub"
)

func newPlan() *cobra.Command {
	var output string
	var in outlookInput
	cmd := &cobra.Command{
		Use:   "plan PATH",
		Short: "Print what a checkout would do: which clusters get which objects; offline",
		Long: `Plan reads a directory as the daemon reads a commit, and prints the decision on
every cluster for every placement, and what each cluster would hold in the end.
It asks no cluster and no daemon.

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
			in.dir = args[0]
			return runPlan(cmd.OutOrStdout(), in, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	in.bind(cmd.Flags())
	return cmd
}

func runPlan(w io.Writer, in outlookInput, output string) error {
	o, err := look(in)
	var bad *hub.LoadError
	if output == "json" && errors.As(err, &bad) {
		// Whoever reads JSON wants to know by fields what is wrong.
		if err := writeJSON(w, planDocument{APIVersion: planVersion, Problems: describeProblems(bad.Problems)}.filled()); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	d := o.describe()
	changes := compare(o.before, d)
	if output == "json" {
		err = writeJSON(w, d)
	} else {
		err = printPlan(w, d, changes)
	}
	if err == nil && !changes.none() {
		return exitCode(exitDifferences)
	}
	return err
}

// loadDir reads a directory as a commit. The error wraps a *hub.LoadError if
// something in it is wrong.
func loadDir(dir string) (*hub.Snapshot, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{}, os.DirFS(dir))
	var bad *hub.LoadError
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("%s does not load:\n%w", dir, bad)
	}
	return s, err
}
