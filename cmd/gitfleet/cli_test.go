package main

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/test/golden"
)

// docs/cli.md is generated from the help texts of the commands.
func TestTheCommandLineIsDocumented(t *testing.T) {
	const page = "../../docs/cli.md"
	for _, name := range []string{"GITFLEET_SERVER", "GITFLEET_TOKEN_FILE", "GITFLEET_CA_FILE", "GITFLEET_CLIENT_CERT", "GITFLEET_CLIENT_KEY"} {
		t.Setenv(name, "") // variables of the user who runs the test
	}
	golden.File(t, page, reference())
	for _, cmd := range newRoot().Commands() {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || cmd.Example == "" && cmd.Name() != "version" && cmd.Long == "" {
			t.Errorf("gitfleet %s has no good description", cmd.Name())
		}
	}
}

// No command has too many flags, and help shows its own flags before those of the connection.
func TestNoCommandHasTooManyFlags(t *testing.T) {
	const most = 14
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		n := 0
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { n++ })
		if n > most {
			t.Errorf("%s has %d flags, more than %d", cmd.CommandPath(), n, most)
		}
		help := cmd.UsageString()
		if own, other := strings.Index(help, "\nFlags:"), strings.Index(help, "\nConnection:"); other >= 0 && own > other {
			t.Errorf("%s shows the connection first:\n%s", cmd.CommandPath(), help)
		}
		for line := range strings.Lines(help) {
			if output.Width(strings.TrimSuffix(line, "\n")) > output.DefaultWidth {
				t.Errorf("%s: wider than %d columns: %s", cmd.CommandPath(), output.DefaultWidth, line)
			}
		}
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk(newRoot())
}

// For a flag that is now a setting, the error has the key of the setting; for a misspelt flag,
// it suggests the right one.
func TestUnknownFlags(t *testing.T) {
	for line, want := range map[string]string{
		"run --limit-files 3":         "--limit-files is not a flag; set limits.files in the configuration file, or with --set KEY=VALUE",
		"validate --limit-build-time": "set limits.buildTime in",
		"plan --ssh-key-file k":       "set source.sshKeyFile in",
		"render --token-env T":        "set source.tokenEnv or forge.tokenEnv in",
		"run --tls-cert-file c":       "set server.certFile in",
		"run --max-unreachable 1":     "set rollout.maxUnreachable in",
		"run --signatures-path a=b":   "set source.signatures.paths in",
		"diff --github-app-id 3":      "set source.githubAppID in",
		"plan . --curent a":           `--curent is not a flag of "gitfleet plan"; did you mean --current?`,
		"status --limit-files 3":      `--limit-files is not a flag of "gitfleet status"; see "gitfleet status --help"`,
		"status -x":                   "unknown shorthand flag",
	} {
		code, out, errOut := command(strings.Fields(line)...)
		if code != exit.Failed || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d, %s%s\nwant %s", line, code, out, errOut, want)
		}
	}
}

// The error about wrong arguments says which are expected, and that about an unknown command
// suggests an existing one.
func TestWrongArguments(t *testing.T) {
	for line, want := range map[string]string{
		"validate":          "an argument is missing; write gitfleet validate PATH|REPO@REF",
		"explain":           "an argument is missing; write gitfleet explain ",
		"explain a b c":     `unexpected argument "c"; write gitfleet explain `,
		"adopt-fleet x y":   `unexpected argument "y"; write gitfleet adopt-fleet [ID]`,
		"bugreport extra":   `unexpected argument "extra"; write gitfleet bugreport`,
		"vaildate .":        `there is no command "gitfleet vaildate"; did you mean validate?`,
		"logs":              `there is no command "gitfleet logs"; see "gitfleet --help"`,
		"drift lsit":        `there is no command "gitfleet drift lsit"; did you mean list?`,
		"state save":        `there is no command "gitfleet state save"`,
		"completion tcsh":   `there is no command "gitfleet completion tcsh"`,
		"completion bash x": `unexpected argument "x"`,
	} {
		code, out, errOut := command(strings.Fields(line)...)
		if code != exit.Failed || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d, %s%s\nwant %s", line, code, out, errOut, want)
		}
	}
	for _, line := range []string{"", "drift", "state"} {
		if code, out, errOut := command(strings.Fields(line)...); code != exit.OK || !strings.Contains(out, "Available Commands:") && !strings.Contains(out, "See the fleet:") || strings.Contains(out, "[flags]") {
			t.Errorf("%q: exit code %d, %s%s", line, code, out, errOut)
		}
	}
}

const referenceHead = `<!-- written by go test ./cmd/gitfleet -update, from what the commands say of themselves -->
# The command line

The commands that ask a daemon find it at ` + "`--server`" + ` or ` + "`$GITFLEET_SERVER`" + `. If neither is set, and the working
directory has a ` + "`gitfleet.yaml`" + `, a daemon of another fleet than that one is refused, with the address of the right one.
Without that file, but in a clone of a repository with members or placements, it is refused if none of the clone's remotes is
its repository, by the path of their addresses, or if it follows another directory of it; its branch is not compared.
Which of them answers which question is in [Reading status](reading-status.md).

| Exit code | Meaning |
|---|---|
| 0 | success; nothing to look at |
| 1 | there is something to look at, see below; or a name is unknown |
| 2 | an error: the arguments are wrong, or the daemon, a cluster or a repository could not be reached; the reason is on standard error |

| Command | exits 1 if |
|---|---|
| ` + "`status`" + ` | the newest commit is refused, the repository cannot be read, a placement is not [as Git asks for](reading-status.md#what-counts-as-done) for another reason than that it is in progress, or a member does not answer, lacks permissions, is claimed by another fleet, or has new credentials that cannot be used |
| ` + "`wait`, `sync --wait`" + ` | the content is not available, or not applied, on every cluster that is asked for in time, or will not be by itself |
| ` + "`adopt-fleet`" + ` | without an ID: another fleet has claimed a cluster |
| ` + "`diff`, `plan --current`, `plan --pr`, `plan REPO@FROM..TO`" + ` | something would change |
| ` + "`drift list`, `drift show`" + ` | an object differs from Git now |
| ` + "`proposals list`" + ` | a change is held |
| ` + "`validate --strict`" + ` | there are warnings |
| ` + "`doctor`" + ` | a check failed |

` + "`-o json`, `-o yaml` and `-o jsonpath=TEMPLATE`" + ` mean the same everywhere; every document names its schema in
` + "`apiVersion`" + `. A placement is named ` + "`crp/NAME`, `rp/NAMESPACE/NAME`" + ` or by its name alone, a member cluster
` + "`mc/NAME`, `cluster/NAME`" + ` or by its name alone, and an object ` + "`KIND/NAME -n NAMESPACE`" + ` or
` + "`KIND/NAMESPACE/NAME`" + `: whatever a command prints as a name, every command takes.
Lines that are wider than a terminal are wrapped between words.

Colours are for terminals only, and never if ` + "`$NO_COLOR`" + ` is set. In text, control characters and
characters that are invisible or change the direction of writing are shown as escapes such as ` + "`\\u202e`" + `, wherever they
came from; documents (` + "`-o json`, `-o yaml`" + `, manifests, kubeconfigs) have them as they are unless they go to a terminal.

` + "`source <(gitfleet completion bash)`" + `
completes commands, flags, and the names of placements and clusters; bash needs its package
bash-completion for that.

| Command | |
|---|---|
`

// connectionHead introduces the part about the flags of all commands that use a daemon.
const connectionHead = `
## Asking a daemon

These flags go with every command that asks a daemon:

| Flag | Default | |
|---|---|---|
`

func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	commands := newRoot().Commands()
	for _, cmd := range commands {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" && cmd.Name() != "completion" {
			fmt.Fprintf(&b, "| [%s](#gitfleet-%s) | %s |\n", cmd.Name(), cmd.Name(), cmd.Short)
		}
	}
	var at client.Connection
	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	at.Bind(shared)
	b.WriteString(connectionHead)
	shared.VisitAll(func(f *pflag.Flag) { describeFlag(&b, f) })
	for _, cmd := range commands {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" && cmd.Name() != "completion" {
			describeCommand(&b, cmd)
			for _, below := range cmd.Commands() {
				describeCommand(&b, below)
			}
		}
	}
	return b.String()
}

// A help text is wrapped for a terminal of 80 columns.
func TestHelpFitsATerminal(t *testing.T) {
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if n := output.Width(line) - 1; n > 80 {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		for _, below := range cmd.Commands() {
			if below.Name() != "completion" { // not one of gitfleet's commands
				check(below)
			}
		}
	}
	check(newRoot())
}

func describeCommand(b *strings.Builder, cmd *cobra.Command) {
	level := strings.Repeat("#", 1+len(strings.Fields(cmd.CommandPath()))-1)
	fmt.Fprintf(b, "\n%s %s\n\n", level, cmd.CommandPath())
	fmt.Fprintf(b, "    %s\n\n%s\n", cmd.UseLine(), strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short+".")))
	if cmd.Example != "" {
		b.WriteString("\n```\n")
		for line := range strings.Lines(cmd.Example) {
			b.WriteString(strings.TrimPrefix(line, "  "))
		}
		b.WriteString("\n```\n")
	}
	var own []*pflag.Flag
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && !client.IsConnectionFlag(f) {
			own = append(own, f)
		}
	})
	if len(own) > 0 {
		b.WriteString("\n| Flag | Default | |\n|---|---|---|\n")
		for _, f := range own {
			describeFlag(b, f)
		}
	}
}

func describeFlag(b *strings.Builder, f *pflag.Flag) {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	value := ""
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
		value = "`" + f.DefValue + "`"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, value, strings.ReplaceAll(f.Usage, "|", "\\|"))
}
