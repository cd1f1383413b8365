package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

func newPlan() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "plan PATH",
		Short: "Print what a checkout would do: which clusters get which objects; offline",
		Long: `Plan reads a directory as the daemon reads a commit, and prints the decision on
every cluster for every placement, and what each cluster would hold in the end.
It asks no cluster: every declared member counts as healthy and empty.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			snapshot, err := loadDir(args[0])
			if err != nil {
				return err
			}
			p := plan.Resolve(offline(snapshot))
			switch output {
			case "json":
				return writeJSON(cmd.OutOrStdout(), describePlan(snapshot, p))
			case "text":
				return printPlan(cmd.OutOrStdout(), describePlan(snapshot, p))
			}
			return fmt.Errorf("-o %s: use text or json", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// loadDir reads a directory as a commit.
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
		return nil, fmt.Errorf("%s does not load:\n%w", dir, bad.Problems.Err())
	}
	return s, err
}

// offline is a fleet in which all is well and nothing is placed yet.
func offline(s *hub.Snapshot) plan.Input {
	l := ledger.New()
	now := time.Now()
	for _, c := range s.Clusters {
		l.Fold(ledger.ClusterSeen{Cluster: c.Name, At: now, Healthy: true})
	}
	return plan.Input{Head: s, Ledger: l, Now: now, Memo: plan.NewMemo()}
}

// printPlan writes a plan for a person.
func printPlan(w io.Writer, d planDocument) error {
	for _, p := range d.Placements {
		fmt.Fprintf(w, "%s\n", placementTitle(p))
		for _, c := range p.Conditions {
			fmt.Fprintf(w, "  %s: %s\n", c.Reason, c.Message)
		}
		for _, dec := range p.Decisions {
			mark := "-"
			if dec.Selected {
				mark = "+"
			}
			fmt.Fprintf(w, "  %s %s: %s\n", mark, dec.Cluster, dec.Reason)
		}
		for _, problem := range p.Problems {
			fmt.Fprintf(w, "  ! %s\n", problem.text())
		}
		fmt.Fprintln(w)
	}
	for _, c := range d.Clusters {
		fmt.Fprintf(w, "%s holds %d object(s)\n", c.Name, len(c.Objects))
		rows := make([]string, 0, len(c.Objects))
		for _, o := range c.Objects {
			rows = append(rows, fmt.Sprintf("  %s  (%s)", objectTitle(o), o.Placement))
		}
		fmt.Fprintln(w, strings.Join(append(rows, ""), "\n"))
	}
	for _, problem := range d.Problems {
		fmt.Fprintf(w, "%s: %s\n", problem.Severity, problem.text())
	}
	return nil
}

func placementTitle(p planPlacement) string {
	parts := []string{p.Kind, p.Namespace, p.Name}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

func objectTitle(o planObject) string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return o.Kind + " " + name
}
