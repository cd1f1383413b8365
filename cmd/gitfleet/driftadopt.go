package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func newDriftAdopt() *cobra.Command {
	var at connection
	var cluster, namespace, checkout string
	cmd := &cobra.Command{
		Use:   "adopt KIND/NAME --cluster CLUSTER --write PATH",
		Short: "Write what a member cluster has into a checkout of the repository",
		Long: `Adopt edits the file that an object comes from so that it has the values that
were found on a member cluster. It changes the lines of these fields and no
others. Drift that was corrected since can be adopted as well. Look at the
result with git diff, then commit it.

It edits plain manifests. It refuses objects that a kustomization builds, that
come out of an envelope or that an override changes, values of Secrets, and
fields whose value is a list or a map.`,
		Example: `  gitfleet drift adopt deployment/web -n shop --cluster east --write .`,
		Args:    cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case cluster == "":
				return errors.New("--cluster: name the member cluster whose values to adopt, such as --cluster east")
			case checkout == "":
				return errors.New("--write: name the checkout of the repository to edit, such as --write ./fleet")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := at.trace(cmd.Context(), args[0], namespace, cluster)
			if err != nil {
				return err
			}
			return adoptDrift(cmd.OutOrStdout(), t, checkout)
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "member cluster whose values to adopt")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the object")
	cmd.Flags().StringVar(&checkout, "write", "", "checkout of the repository to edit")
	at.bind(cmd.Flags())
	return cmd
}

// adoptDrift edits the file of an object in a checkout.
func adoptDrift(w io.Writer, t *status.Trace, checkout string) error {
	if err := proposal.Adoptable(t); err != nil {
		return err
	}
	path, number, found := strings.Cut(t.Origin, ":")
	line, err := strconv.Atoi(number)
	if !found || err != nil {
		return fmt.Errorf("%s: the line of the object is not known", t.Origin)
	}
	root, err := os.OpenRoot(checkout)
	if err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	defer root.Close()
	name := filepath.FromSlash(path)
	text, err := root.ReadFile(name)
	if err != nil {
		return fmt.Errorf("--write: %w; name the top of a checkout of %s", err, short(t.Revision))
	}
	var details []api.PatchDetail
	for _, d := range t.Drift.Paths {
		details = append(details, d.PatchDetail)
	}
	changes, err := proposal.Changes(text, line, details)
	if err == nil {
		text, err = proposal.Edit(text, line, changes)
	}
	var field *proposal.FieldError
	switch {
	case errors.As(err, &field):
		return fmt.Errorf("%s:%d: %s: %s", path, field.Line, field.Path, field.Reason)
	case err != nil:
		return fmt.Errorf("%s: %w; check out %s, or the commit that is in force", path, err, short(t.Revision))
	}
	info, err := root.Stat(name)
	if err != nil {
		return err
	}
	if err := root.WriteFile(name, text, info.Mode().Perm()); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "edited %s\n", t.Origin)
	for _, d := range t.Drift.Paths {
		fmt.Fprintf(&b, "  %s\n", harmless(d.Path))
		for _, v := range []struct{ mark, value string }{{"-", d.ValueInHub}, {"+", d.ValueInMember}} {
			if v.value == "" {
				continue
			}
			for _, line := range strings.Split(strings.TrimSuffix(v.value, "\n"), "\n") {
				fmt.Fprintf(&b, "    %s %s\n", v.mark, harmless(line))
			}
		}
	}
	b.WriteString("Look at it with git diff, then commit it.\n")
	_, err = io.WriteString(w, b.String())
	return err
}
