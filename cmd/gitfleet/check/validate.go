// Package check has the commands that check a repository without a daemon: validate, plan and
// render.
package check

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
)

// writers write the formats that are not documents: text, and formats that services show in a
// pull request.
var writers = map[string]func(w io.Writer, all []finding) error{
	"text": writeText, "sarif": writeSARIF, "github": writeGitHub,
}

// NewValidate returns the command validate.
func NewValidate() *cobra.Command {
	var r offline.Reader
	var in offline.Input
	var out output.Format
	var strict bool
	cmd := &cobra.Command{
		Use:   "validate PATH|REPO@REF|REPO@FROM..TO",
		Short: "Report the problems of a repository, before it is committed",
		Long: `Validate reads a directory as the daemon reads a commit, and reports all
problems at once as path:line: field: message. It asks no cluster, and no
network.

PATH is the directory that is the hub, in its checkout: files are named as in
the repository. What Git ignores and what is not committed yet is read as well.
REPO@REF is a commit of a repository: a URL, which is cloned temporarily, or a
directory in a clone, which is the hub as it was at that commit. REF is a
branch, a tag, a whole commit hash, or a range of versions such as ">=1.2 <2";
in a clone also the beginning of a hash, a remote-tracking branch, or a commit
relative to another, as in .@HEAD~1..HEAD.

Warnings are about content that is accepted but probably a mistake, such as
fields that a kind of Kubernetes does not have, and about configuration without
effect: placements that select nothing, clusters that no placement selects,
files that no placement selects, bases that no kustomization uses, overrides
that match nothing. They are reported once the repository loads. Without
--clusters members count as declared and healthy, and what depends on properties
that no MemberCluster declares is not checked.

With --current or REPO@FROM..TO there are also warnings of deletions, since the
earlier plan or the commit FROM, that the daemon would block until a commit
allows them, and of placements that may have been renamed.

Indexes in patches that mean another item of a list than before are warnings as
well: than at FROM, or for PATH in a clone, than in its last commit.

Exit codes: 0 valid, 2 problems, and with --strict 1 if there are warnings only.`,
		Example: `  gitfleet validate .
  gitfleet validate --strict -o github fleet/
  gitfleet validate -o sarif . > gitfleet.sarif
  gitfleet validate --config gitfleet.yaml https://git.example.com/fleet@main`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			base, snapshot, err := r.ReadChange(cmd.Context(), cmd.Flags(), args[0])
			found, planned, err := examine(snapshot, err, in.Clusters)
			if err != nil {
				return err
			}
			deleted := ""
			if in.Base = base; snapshot != nil && (base != nil || in.Current != "") {
				var blocked []finding
				if blocked, deleted, err = examineDeletions(in, snapshot, r.DeletionLimit); err != nil {
					return err
				}
				found = sortFindings(append(found, blocked...))
			}
			if snapshot != nil && base == nil {
				for _, p := range forecast.MovedItems(func() *hub.Snapshot { return r.Head(cmd.Flags(), args[0]) }, snapshot) {
					found = sortFindings(append(found, finding{p, doubtful}))
				}
			}
			if write, known := writers[out.Name]; known {
				err = write(cmd.OutOrStdout(), found)
			} else {
				err = out.Write(cmd.OutOrStdout(), validateDocumentOf(snapshot, found))
			}
			if err != nil {
				return fmt.Errorf("write: %w", err)
			}
			if planned != nil {
				offline.PrintUnknownSelections(cmd.ErrOrStderr(), planned.Plan)
			}
			summarize(cmd.ErrOrStderr(), args[0], snapshot, found)
			fmt.Fprint(cmd.ErrOrStderr(), deleted)
			return verdict(found, strict)
		},
	}
	out.Bind(cmd.Flags(), "text", "github", "sarif")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit code 1 if there are warnings but no problems")
	in.Bind(cmd.Flags())
	cmd.Flags().Lookup("clusters").Usage = clustersUsage
	r.Bind(cmd.Flags())
	return cmd
}

// clustersUsage describes the flag --clusters.
const clustersUsage = "file of MemberClusters with their status, as get clusters -o yaml writes it: the observed fleet"

// examine returns the findings about a snapshot with its plan, or those about one that did not
// load. err is the result of loading it; any other error than a *hub.LoadError is returned.
func examine(s *hub.Snapshot, err error, clusters string) ([]finding, *forecast.Forecast, error) {
	if bad, ok := errors.AsType[*hub.LoadError](err); ok {
		return sortFindings(findingsOf(bad.Problems)), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	o, err := offline.Plan(s, clusters)
	if err != nil {
		return nil, nil, err
	}
	found := findingsOf(o.Warnings)
	for i := range found {
		if slices.Contains(s.Unused, found[i].Path) {
			found[i].rule = dead
		}
	}
	return sortFindings(append(found, inspect(o.Snapshot, o.Plan)...)), o, nil
}

// summarize prints the result in one line.
func summarize(w io.Writer, name string, s *hub.Snapshot, found []finding) {
	errors, warnings := countFindings(found)
	var parts []string
	if errors > 0 {
		parts = append(parts, output.Count(errors, "problem"))
	} else {
		parts = append(parts, "valid")
	}
	if warnings > 0 {
		parts = append(parts, output.Count(warnings, "warning"))
	}
	text := strings.Join(parts, ", ")
	if s != nil {
		text += fmt.Sprintf(" (%s, %s, %s)", output.Count(len(s.Objects), "object"), output.Count(len(s.Placements), "placement"), output.Count(len(s.Clusters), "cluster"))
	}
	fmt.Fprintf(w, "%s: %s\n", name, text)
}

// verdict returns the exit code for findings.
func verdict(found []finding, strict bool) error {
	errors, warnings := countFindings(found)
	switch {
	case errors > 0:
		return exit.Failed
	case strict && warnings > 0:
		return exit.Attention
	}
	return nil
}
