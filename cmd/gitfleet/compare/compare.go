// Package compare has the command diff, which compares Git with the live objects.
package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
)

// NewDiff returns the command diff.
func NewDiff() *cobra.Command {
	var d diffCommand
	var out output.Format
	cmd := &cobra.Command{
		Use:   "diff [PLACEMENT|KIND/NAME] --config gitfleet.yaml",
		Short: "Compare Git with the live objects on the member clusters",
		Long: `Compare Git with the live objects on the clusters, field by field: what would be
added, changed, taken over and deleted once every rollout is over. Diff asks the
clusters itself and never writes to them. It needs no daemon; if one answers,
suspended objects are marked as such.

By default diff reads the newest commit of the repository in the configuration;
--commit names another one, and --path a checkout. Values of Secrets are masked.

With --server-side every object is applied in a dry run, and the API server
decides whether it differs, as kubectl diff --server-side does. Every difference
counts, also one that gitfleet would leave as it is. Objects of aggregated APIs,
which may ignore that it is a dry run, are compared without one.

Exit codes: 0 no differences, 1 differences, 2 error.`,
		Example: `  gitfleet diff --config gitfleet.yaml
  gitfleet diff crp/web --config gitfleet.yaml --path . --cluster east
  gitfleet diff deploy/web -n shop --config gitfleet.yaml --server-side
  gitfleet diff --config gitfleet.yaml --commit feature-branch -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.wanted, d.cluster = strings.Join(args, ""), api.ClusterName(d.cluster)
			return d.run(cmd.Context(), cmd, out)
		},
	}
	out.Bind(cmd.Flags(), "text")
	d.bind(cmd.Flags())
	return cmd
}

// A diffCommand has the arguments of diff.
type diffCommand struct {
	config, path, commit string
	wanted, namespace    string           // the name of a placement or object; empty for all
	placement            api.PlacementKey // the key of that placement; zero for all
	object               api.ObjectName   // that object; zero for all
	cluster              string           // empty for all
	serverSide           bool
	daemon               client.Connection
}

func (d *diffCommand) bind(f *pflag.FlagSet) {
	f.StringVar(&d.path, "path", "", "compare this checkout, instead of the repository's newest commit")
	f.StringVar(&d.commit, "commit", "", "compare this commit, branch or tag of the repository")
	f.StringVar(&d.cluster, "cluster", "", "only this member cluster")
	f.StringVarP(&d.namespace, "namespace", "n", "", "namespace of the object")
	f.BoolVar(&d.serverSide, "server-side", false, "determine the differences by dry runs on the API server of each member")
	settings.Bind(f, &d.config, "the daemon's configuration file, for the repository and the members", "members.kubeconfigDir", "members.kubeconfig")
	settings.BindConfigEnv(f)
	d.daemon.BindAddress(f)
}

func (d *diffCommand) run(ctx context.Context, cmd *cobra.Command, out output.Format) error {
	cfg, err := d.read(cmd.Flags())
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("server") && os.Getenv(client.ServerEnv) == "" {
		d.daemon.Address = cfg.LocalAddress()
	}
	daemon := d.ask(ctx, cfg)
	s, refused, err := d.snapshot(ctx, cfg, daemon)
	if bad, ok := errors.AsType[*hub.LoadError](err); ok {
		return fmt.Errorf("the content to compare does not load:\n%w", bad)
	}
	if err != nil {
		return err
	}
	// A placement that was removed from Git may still have objects on clusters.
	var clusters []string
	for _, c := range s.Clusters {
		clusters = append(clusters, c.Name)
	}
	if err := lookup.Name("cluster", d.cluster, clusters); err != nil {
		return err
	}
	note, err := cfg.NameFleet(daemon.fleet.Name)
	if err != nil {
		return err
	}
	doc, err := d.compare(ctx, cfg, s, daemon)
	if err != nil {
		return err
	}
	if note != "" {
		doc.Notes = append(doc.Notes, note)
	}
	if refused != "" {
		doc.Problems = append([]string{refused}, doc.Problems...)
	}
	err = out.Print(cmd.OutOrStdout(), doc, doc.text)
	switch {
	case err != nil:
		return err
	case doc.incomplete():
		return exit.Failed
	case doc.differs():
		return exit.Attention
	}
	return nil
}

// read reads and validates the configuration.
func (d *diffCommand) read(flags *pflag.FlagSet) (settings.Config, error) {
	cfg, err := settings.Read(d.config, flags)
	if err == nil {
		err = cfg.ValidateLimits()
	}
	switch {
	case err != nil:
		return cfg, err
	case d.path != "" && d.commit != "":
		return cfg, errors.New("--path and --commit exclude each other")
	case d.path == "" && cfg.Source.URL == "":
		return cfg, errors.New("nothing to compare: set --config gitfleet.yaml, or $" + settings.ConfigEnv + ", for its repository, or --path DIR for a checkout")
	case cfg.Members.KubeconfigDir == "" && cfg.Members.Kubeconfig == "" && cfg.Members.SecretNamespace == "":
		return cfg, errors.New("the kubeconfigs of the members are missing: set --config gitfleet.yaml, --kubeconfig-dir or --kubeconfig")
	}
	return cfg, nil
}

// snapshot returns the desired state in Git. refused is the reason why a daemon would not
// accept it.
func (d *diffCommand) snapshot(ctx context.Context, cfg settings.Config, daemon daemonState) (s *hub.Snapshot, refused string, err error) {
	switch {
	case d.path != "":
		s, err = offline.ReadDir(d.path, cfg.HubOptions())
		return s, "", err
	case d.commit != "":
		s, err = offline.ReadRemote(ctx, cfg, d.commit)
		return s, "", err
	}
	return offline.NewestCommit(ctx, cfg, daemon.inForce)
}
