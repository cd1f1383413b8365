package view

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// newDriftAdopt returns the command drift adopt.
func newDriftAdopt() *cobra.Command {
	var at client.Connection
	var cluster, namespace, checkout string
	var only bool
	cmd := &cobra.Command{
		Use:   "adopt KIND/NAME --cluster CLUSTER --write PATH",
		Short: "Write the values of a member cluster to a checkout",
		Long: `Adopt edits a checkout so that an object has the values that were found on a
member cluster: in its manifest, in its envelope, in its kustomization, or in
the override that sets them. With --only it writes an override for this
cluster, and other clusters keep what they have. It changes the lines of these
fields and no others. Drift that was corrected since can be adopted as well.
Look at the result with git diff, then commit it.

The edited files are loaded before they are written: where they would not give
the object these values, or would change another object, nothing is written.
Values of Secrets are refused.`,
		Example: `  gitfleet drift adopt deployment/web -n shop --cluster east --write .
  gitfleet drift adopt deployment/web -n shop --cluster east --only --write .`,
		Args: cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case cluster == "":
				return errors.New("--cluster: name the member cluster whose values to adopt, such as --cluster east")
			case checkout == "":
				return errors.New("--write: name the checkout of the repository to edit, such as --write ./fleet")
			}
			return nil
		},
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			t, err := c.Trace(cmd.Context(), args[0], namespace, cluster)
			if err != nil {
				return err
			}
			return adoptDrift(cmd.OutOrStdout(), t, checkout, only)
		}),
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "member cluster whose values to adopt")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the object")
	cmd.Flags().StringVar(&checkout, "write", "", "checkout of the repository to edit")
	cmd.Flags().BoolVar(&only, "only", false, "change it for this cluster only, with an override")
	at.Bind(cmd.Flags())
	return cmd
}

// adoptDrift makes the edit for the drift of an object in a checkout.
func adoptDrift(w io.Writer, t *status.Trace, checkout string, only bool) error {
	if err := proposal.Adoptable(t); err != nil {
		return err
	}
	key, err := api.ParsePlacement(t.Placement)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(checkout)
	if err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	defer root.Close()
	files, err := gitsource.WorkTree(checkout)
	if err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	loader := settings.Default().UserLoader("")
	load := func(files fs.FS) (*hub.Snapshot, error) { return loader.Load(hub.Commit{}, files) }
	head, err := load(files)
	if err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	target := edit.Target{ID: t.ID(), Drift: t.Drift.Paths, Deleted: t.Drift.Deleted, Changed: []status.Holder{{Cluster: t.Cluster, Placement: key}}}
	for _, c := range head.Clusters {
		if only && c.Name != t.Cluster {
			target.Others = append(target.Others, status.Holder{Cluster: c.Name, Placement: key})
		}
	}
	result, err := (&edit.Editor{Load: load, Files: files, Head: head}).Edit(target)
	if err != nil {
		return fmt.Errorf("%s: %w; check out %s, or the commit that is in force", t.Origin, err, output.ShortHash(t.Revision))
	}
	if only && result.Override == "" {
		return fmt.Errorf("%s: no override can make this change for %s only", t.Origin, t.Cluster)
	}
	var b strings.Builder
	for _, c := range result.Files {
		if err := writeFile(root, c); err != nil {
			return err
		}
		verb := "edited"
		if c.Before == nil {
			verb = "wrote"
		} else if c.After == nil {
			verb = "removed"
		}
		fmt.Fprintf(&b, "%s %s\n", verb, c.Path)
	}
	for _, d := range t.Drift.Paths {
		output.WriteChange(&b, "  ", d)
	}
	if b.WriteString("Look at it with git diff, then commit it.\n"); t.Drift.Deleted {
		fmt.Fprintf(&b, "If deletions are blocked, the commit message needs the trailer %q.\n", conditions.AllowTrailer(t.Placement))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// writeFile writes the new content of a file, with the mode that it had.
func writeFile(root *os.Root, c edit.FileChange) error {
	name, mode := filepath.FromSlash(c.Path), fs.FileMode(0o644)
	if info, err := root.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	write := func() error { return root.WriteFile(name, c.After, mode) }
	if c.After == nil {
		write = func() error { return root.Remove(name) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	return nil
}
