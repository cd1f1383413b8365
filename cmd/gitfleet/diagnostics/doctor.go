// Package diagnostics has the commands doctor, which checks what a daemon depends on, and bugreport.
package diagnostics

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
)

// doctorVersion identifies the schema of the result in JSON.
const doctorVersion = "gitfleet.dev/doctor/v1"

type doctorDocument struct {
	APIVersion string  `json:"apiVersion"`
	Checks     []check `json:"checks"`
}

// NewDoctor returns the command doctor.
func NewDoctor() *cobra.Command {
	var path string
	var out output.Format
	cmd := &cobra.Command{
		Use:   "doctor --config gitfleet.yaml",
		Short: "Check everything that the daemon depends on",
		Long: `Doctor checks what a daemon with this configuration depends on, with its own
credentials, whether it runs or not:

  - the configuration and the files that it names, and until when the
    certificates in them are valid,
  - the repository: that it can be read, that its newest commit loads, and that
    what is encrypted in it can be decrypted,
  - the forge, if one is used: that it accepts the token, that the repository is
    found, and that the user may write to it,
  - the state directory: that it can be written, its free space, and whether a
    daemon uses it,
  - with highAvailability: the Lease, who leads, the permissions of a replica,
    and that the ledger in the Secrets can be read,
  - each member: that it is reachable, its version, its clock, all permissions
    that the newest commit needs there, and until when its client certificate,
    its token and the certificates of its CA are valid.

It writes nothing but a temporary file in the state directory.

Exit codes: 0 all checks passed or have warnings only, 1 a check failed,
2 error.`,
		Example: `  gitfleet doctor --config gitfleet.yaml
  gitfleet doctor --config gitfleet.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := settings.Load(path, cmd.Flags())
			doc := doctorDocument{doctorVersion, runChecks(cmd.Context(), cfg, err)}
			w := cmd.OutOrStdout()
			err = out.Print(w, doc, func() string { return doc.text(output.PageOf(w)) })
			if err == nil && doc.failed() {
				return exit.Attention
			}
			return err
		},
	}
	out.Bind(cmd.Flags(), "text")
	settings.Bind(cmd.Flags(), &path, "the daemon's configuration file")
	settings.BindConfigEnv(cmd.Flags())
	return cmd
}

// runChecks runs all checks. invalid is the error of the configuration.
func runChecks(ctx context.Context, cfg settings.Config, invalid error) []check {
	if invalid != nil {
		fix := "correct the configuration; docs/configuration.md has all settings"
		if cfg.FilePath() == "" && cfg.Source.URL == "" {
			fix = "name the configuration file of the daemon with --config or $" + settings.ConfigEnv
		}
		var all []check
		for _, err := range settings.Flatten(invalid) {
			all = append(all, check{"config", "", checkFail, err.Error(), fix})
		}
		return all
	}
	all := append([]check{{Check: "config", Subject: cfg.FilePath(), State: checkOK, Message: "valid"}}, checkFiles(cfg)...)
	all = append(all, checkState(cfg)...)
	all = append(all, checkReplicas(ctx, cfg, leaseWatch)...)
	snapshot, repository := checkRepository(ctx, cfg)
	all = append(append(all, repository), checkForge(ctx, cfg)...)
	if snapshot == nil {
		return append(all, check{"member", "", checkWarn, "the members are not checked: the repository declares them", "correct the repository first"})
	}
	return slices.Concat(all, checkDecryption(snapshot), checkMembers(ctx, cfg, snapshot))
}

func (d doctorDocument) failed() bool {
	return slices.ContainsFunc(d.Checks, func(c check) bool { return c.State == checkFail })
}

// text writes a line for each check, followed by the fix.
func (d doctorDocument) text(p output.Page) string {
	const indent = "      "
	var b strings.Builder
	for _, c := range d.Checks {
		what := strings.TrimSpace(c.Check + " " + c.Subject)
		fmt.Fprintln(&b, p.Fold(fmt.Sprintf("%-4s  %s: %s", c.State, output.Escape(what), output.Escape(c.Message)), indent))
		if c.Fix != "" {
			fmt.Fprintln(&b, p.Fold(indent+"fix: "+output.Escape(c.Fix), indent))
		}
	}
	return b.String()
}
