package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

func newState() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Back up and restore the state of the daemon",
		Long: `Back up and restore what the daemon keeps in its state directory: the clusters
chosen for each placement, the revision each has, suspensions, remembered drift
and events.

A lost state directory is rebuilt from Git and from the clusters. Rollouts then
begin anew, PickN chooses no replacement for a cluster that does not answer, and
suspensions, drift and events are lost.`,
	}
	cmd.AddCommand(newStateExport(), newStateImport())
	return cmd
}

func newStateExport() *cobra.Command {
	var at connection
	var dir, file string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a backup",
		Long: `Write the daemon's state, one JSON record a line. With --state-dir the directory
is read instead; the daemon that uses it must be stopped.`,
		Example: `  gitfleet state export > state.jsonl
  gitfleet state export --state-dir /var/lib/gitfleet -f state.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			export := func(w io.Writer) error { return exportDaemon(cmd.Context(), &at, w) }
			if dir != "" {
				export = func(w io.Writer) error { return exportDir(dir, w) }
			}
			if file == "" {
				return export(cmd.OutOrStdout())
			}
			return writeWhole(file, export)
		},
	}
	at.bind(cmd.Flags())
	cmd.Flags().StringVar(&dir, "state-dir", "", "read this state directory, instead of asking the daemon")
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write; standard output if it is not set")
	return cmd
}

// exportDaemon asks a daemon.
func exportDaemon(ctx context.Context, at *connection, w io.Writer) error {
	c, err := at.client()
	if err != nil {
		return err
	}
	resp, err := c.do(ctx, http.MethodGet, "/state", nil, nil)
	var silent *silentError
	if errors.As(err, &silent) {
		return fmt.Errorf("%w\nIf none is running, use --state-dir", err)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("read the daemon's answer: %w; what was written is not whole", err)
	}
	return nil
}

func exportDir(dir string, w io.Writer) error {
	if _, err := os.Stat(filepath.Join(dir, "ledger")); err != nil {
		return fmt.Errorf("%s is no state directory: %w", dir, err)
	}
	return withLedger(dir, func(a ledger.Archive) error { return a.Export(w) })
}

func withLedger(dir string, do func(ledger.Archive) error) error {
	a, err := ledger.Open(filepath.Join(dir, "ledger"))
	if errors.Is(err, ledger.ErrInUse) {
		return fmt.Errorf("%w\nStop the daemon that uses it; to export, ask it instead, without --state-dir", err)
	}
	if err != nil {
		return err
	}
	return errors.Join(do(a), a.Close())
}

// writeWhole writes a file beside the one that is meant and puts it there when
// it is whole.
func writeWhole(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".gitfleet-state-")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func newStateImport() *cobra.Command {
	var dir string
	var force bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Put a backup into a state directory",
		Long: `Put a backup into the state directory of a daemon that is not running; "-" reads
standard input. The repository is cloned again when the daemon starts.

A backup of an older version is migrated; one of a newer version is refused. A
state that is there is replaced only with --force, and kept beside the new one.`,
		Example: `  gitfleet state import state.jsonl --state-dir /var/lib/gitfleet`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return errors.New("say with --state-dir which state directory is meant")
			}
			in := cmd.InOrStdin()
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			if err := withLedger(dir, func(a ledger.Archive) error { return a.Import(in, force) }); err != nil {
				return fmt.Errorf("import %s: %w", args[0], err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s has the state of the backup; the daemon goes on from it when it is started\n", dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "state-dir", "", "the daemon's state directory; it is made if it is not there")
	cmd.Flags().BoolVar(&force, "force", false, "replace a state that is there, and keep it beside the new one")
	return cmd
}
