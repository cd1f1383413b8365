package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/atomicfile"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/replica"
)

// NewState returns the command state.
func NewState() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Back up, restore and reset the state of the daemon",
		Long: `Back up, restore and reset what the daemon keeps in its state directory: the
clusters chosen for each placement, the revision each has, suspensions,
remembered drift and events.

A lost state directory is rebuilt from Git and from the clusters. Rollouts then
begin anew, PickN chooses no replacement for a cluster that does not answer, and
suspensions, drift and events are lost.`,
	}
	cmd.AddCommand(newStateExport(), newStateImport(), newStateReset())
	return cmd
}

// newStateExport returns the command state export.
func newStateExport() *cobra.Command {
	var at client.Connection
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
				return export(output.Raw(cmd.OutOrStdout()))
			}
			return atomicfile.Write(file, export)
		},
	}
	at.Bind(cmd.Flags())
	cmd.Flags().StringVar(&dir, "state-dir", "", "read this state directory, instead of asking the daemon")
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write; standard output if it is not set")
	return cmd
}

// exportDaemon requests a backup from a daemon.
func exportDaemon(ctx context.Context, at *client.Connection, w io.Writer) error {
	c, err := at.Client()
	if err != nil {
		return err
	}
	resp, err := c.Do(ctx, http.MethodGet, "/state", nil, nil)
	if _, silent := errors.AsType[*client.UnreachableError](err); silent {
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

// readSettings reads a configuration file for a command that needs a part of it only.
func readSettings(config string) (settings.Config, error) {
	return settings.Read(config, pflag.NewFlagSet("", pflag.ContinueOnError))
}

// withSharedLedger opens the ledger of the replicas that a configuration file describes.
func withSharedLedger(config string, do func(ledger.Archive) error) error {
	cfg, err := readSettings(config)
	if err != nil {
		return err
	}
	if cfg.HighAvailability.Lease.Name == "" {
		return fmt.Errorf("%s: highAvailability.lease.name is not set", config)
	}
	if err := cfg.ValidateHighAvailability(); err != nil {
		return err
	}
	secrets, err := replica.Unfenced(cfg.ReplicaConfig("gitfleet state import", nil))
	if err != nil {
		return err
	}
	return do(ledger.OpenShared(secrets, "gitfleet state import", nil))
}

// newStateImport returns the command state import.
func newStateImport() *cobra.Command {
	var dir, config string
	var force bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Put a backup into a state directory",
		Long: `Put a backup into the state directory of a daemon that is not running; "-" reads
standard input. The repository is cloned again when the daemon starts.

With --config the backup is put beside the Lease that the configuration names
under highAvailability, for all replicas. The one that leads then ends, and the
next leader goes on from the backup.

A backup whose records this version does not know is refused.
State that is there already is replaced only with --force. That of a state
directory is kept beside the new one; that of replicas is not kept, so export
it before.`,
		Example: `  gitfleet state import state.jsonl --state-dir /var/lib/gitfleet
  gitfleet state import state.jsonl --config gitfleet.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (dir == "") == (config == "") {
				return errors.New("say with --state-dir which state directory is meant, or with --config which replicas")
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
			where, with := dir, withLedger
			if config != "" {
				where, with = config, withSharedLedger
			}
			if err := with(where, func(a ledger.Archive) error { return a.Import(in, force) }); err != nil {
				return fmt.Errorf("import %s: %w", args[0], err)
			}
			if config != "" {
				where = "the management cluster"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s has the state of the backup; the daemon goes on from it when it is started\n", where)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "state-dir", "", "the daemon's state directory; it is made if it is not there")
	cmd.Flags().StringVar(&config, "config", "", "configuration file of replicas that share a ledger")
	cmd.Flags().BoolVar(&force, "force", false, "replace state that is there already")
	return cmd
}

// newStateReset returns the command state reset.
func newStateReset() *cobra.Command {
	var dir, config string
	var force bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Move a damaged ledger aside",
		Long: `Move a damaged ledger aside, so that the daemon begins an empty one and rebuilds
it from Git and the clusters. Nothing is deleted: the file stays beside its old
place, under a name that ends in the time. The daemon must be stopped; one that
does not start because of the damage is.

With --config the state directory is that of the configuration. If the
configuration has a Lease under highAvailability, the ledger is that of the
replicas, none of which may lead. Its Secrets are copied under names that have
the time in them, before they are removed.

What a rebuilt ledger lacks is said in docs/rolling-out.md#what-is-remembered.
With a backup, import it afterwards instead of starting without.

A ledger that can be read, or that a newer version has written, is not damaged,
and is moved aside only with --force. One that the file system does not let be
read stays where it is: mend the file system or its permissions.`,
		Example: `  gitfleet state reset --state-dir /var/lib/gitfleet
  gitfleet state reset --config gitfleet.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (dir == "") == (config == "") {
				return errors.New("say with --state-dir which state directory is meant, or with --config which daemon or replicas")
			}
			aside, err := resetState(cmd.Context(), dir, config, force)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "moved aside to %s; the daemon rebuilds the ledger from Git and the members when it is started\n", aside)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "state-dir", "", "the daemon's state directory")
	cmd.Flags().StringVar(&config, "config", "", "configuration file of the daemon, or of replicas that share a ledger")
	cmd.Flags().BoolVar(&force, "force", false, "move aside also a ledger that is not damaged")
	return cmd
}

// resetState resets the ledger in a state directory, or the one of the daemon or the replicas that a
// configuration file describes. It returns where the ledger is now.
func resetState(ctx context.Context, dir, config string, force bool) (aside string, err error) {
	if config != "" {
		cfg, err := readSettings(config)
		if err != nil {
			return "", err
		}
		if cfg.HighAvailability.Lease.Name != "" {
			if err := cfg.ValidateHighAvailability(); err != nil {
				return "", err
			}
			aside, err := resetShared(ctx, cfg.ReplicaConfig("gitfleet state reset", slog.New(slog.DiscardHandler)), force)
			return "Secrets whose names begin with " + aside, err
		}
		dir = cfg.StateDir
	}
	aside, err = ledger.Reset(filepath.Join(dir, "ledger"), force, time.Now())
	if errors.Is(err, ledger.ErrInUse) {
		return "", fmt.Errorf("%w\nStop the daemon that uses it", err)
	}
	return aside, err
}
