package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
)

func newDiff() *cobra.Command {
	var d difference
	var output string
	cmd := &cobra.Command{
		Use:   "diff [crp/NAME] --config gitfleet.yaml [--path DIR]",
		Short: "Show what a sync would change on the member clusters now",
		Long: `Diff reads what Git wants, and compares it with what is on the clusters, live:
what would be added, changed, taken over and deleted, field by field, once every
rollout is over. It asks the clusters itself, through a connection that cannot
write, and needs no daemon; the configuration says where the clusters are. If the
daemon answers, what is suspended is marked as left as it is; otherwise it says
that this is not known.

Without --path it reads the repository that the configuration names, at its
newest commit or at --commit. With --path it reads a checkout instead, committed
or not. Values of Secrets are masked.

Exit codes: 0 nothing would change, 1 something would, 2 it cannot be told.`,
		Example: `  gitfleet diff --config gitfleet.yaml
  gitfleet diff crp/web --config gitfleet.yaml --path . --cluster east
  gitfleet diff --config gitfleet.yaml --commit feature-branch -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %s: use text or json", output)
			}
			if len(args) > 0 {
				var err error
				if d.placement, err = api.ParsePlacement(args[0]); err != nil {
					return err
				}
			}
			return d.run(cmd.Context(), cmd, output)
		},
	}
	d.bind(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// A difference is what diff is asked for.
type difference struct {
	config, path, commit string
	placement            api.PlacementKey // zero: all
	cluster              string           // empty: all
	flags                Config
	daemon               connection
}

func (d *difference) bind(f *pflag.FlagSet) {
	f.StringVar(&d.config, "config", "", "the daemon's configuration file, for the repository and the members")
	f.StringVar(&d.path, "path", "", "compare this checkout, instead of the repository's newest commit")
	f.StringVar(&d.commit, "commit", "", "compare this commit, branch or tag of the repository")
	f.StringVar(&d.cluster, "cluster", "", "only this member cluster")
	d.daemon.bindAddress(f)
	d.flags = defaultConfig()
	bind(f, []setting{
		{"fleetName", "fleet-name", &d.flags.FleetName, "name of this fleet"},
		{"source.url", "url", &d.flags.Source.URL, "repository, if there is no configuration file"},
	})
	bind(f, d.flags.Source.credentials())
	bind(f, d.flags.Members.settings())
}

func (d *difference) run(ctx context.Context, cmd *cobra.Command, output string) error {
	cfg, err := d.read(cmd.Flags())
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("server") && os.Getenv(serverEnv) == "" {
		d.daemon.address = cfg.answersAt()
	}
	told := d.ask(ctx, cfg)
	s, refused, err := d.snapshot(ctx, cfg, told)
	var bad *hub.LoadError
	if errors.As(err, &bad) {
		return fmt.Errorf("what is to be compared does not load:\n%w", bad)
	}
	if err != nil {
		return err
	}
	if err := d.known(s); err != nil {
		return err
	}
	doc, err := d.compare(ctx, cfg, s, told)
	if err != nil {
		return err
	}
	if refused != "" {
		doc.Problems = append([]string{refused}, doc.Problems...)
	}
	if output == "json" {
		err = writeJSON(cmd.OutOrStdout(), doc)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), doc.text())
	}
	switch {
	case err != nil:
		return err
	case doc.troubled():
		return exitCode(exitError)
	case doc.differs():
		return exitCode(exitDifferences)
	}
	return nil
}

// read reads the configuration. The flag --path is ours, and no setting of it.
func (d *difference) read(flags *pflag.FlagSet) (Config, error) {
	plain, err := readConfig(d.config, pflag.NewFlagSet("", pflag.ContinueOnError))
	if err != nil {
		return plain, err
	}
	cfg, err := readConfig(d.config, flags)
	cfg.Source.Path = plain.Source.Path
	switch {
	case err != nil:
		return cfg, err
	case d.path != "" && d.commit != "":
		return cfg, errors.New("--path and --commit exclude each other: a checkout is as it is")
	case d.path == "" && cfg.Source.URL == "":
		return cfg, errors.New("say what to compare: --config gitfleet.yaml for the repository it names, or --path DIR for a checkout")
	case cfg.Members.KubeconfigDir == "" && cfg.Members.Kubeconfig == "" && cfg.Members.SecretNamespace == "":
		return cfg, errors.New("say where the clusters are: with --config gitfleet.yaml, --kubeconfig-dir or --kubeconfig")
	}
	return cfg, nil
}

// snapshot is what Git wants. refused is why a daemon would not take it all the
// same.
func (d *difference) snapshot(ctx context.Context, cfg Config, told word) (s *hub.Snapshot, refused string, err error) {
	switch {
	case d.path != "":
		s, err = readDir(d.path, cfg.hub())
		return s, "", err
	case d.commit != "":
		s, err = cfg.readRemote(ctx, d.commit)
		return s, "", err
	}
	dir, err := os.MkdirTemp("", "gitfleet-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	cfg.StateDir, cfg.Source.Interval = dir, seconds(3600)
	if err := errors.Join(cfg.validateSource()...); err != nil {
		return nil, "", err
	}
	return cfg.newestOf(ctx, told.inForce)
}

// known returns an error if there is no such placement or cluster. A placement
// that is gone from Git has objects on clusters all the same.
func (d *difference) known(s *hub.Snapshot) error {
	var clusters []string
	for _, c := range s.Clusters {
		clusters = append(clusters, c.Name)
	}
	return knownName("cluster", d.cluster, clusters)
}

// quiet is a log that nobody reads: what matters is told.
var quiet = slog.New(slog.DiscardHandler)
