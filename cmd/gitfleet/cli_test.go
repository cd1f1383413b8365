package main

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/test/golden"
)

// The reference of the command line is what the commands say of themselves.
func TestTheCommandLineIsDocumented(t *testing.T) {
	const page = "../../docs/cli.md"
	for _, name := range []string{serverEnv, tokenFileEnv, caFileEnv, clientCertEnv, clientKeyEnv} {
		t.Setenv(name, "") // of whoever runs the test
	}
	golden.File(t, page, reference())
	for _, cmd := range newRoot().Commands() {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || cmd.Example == "" && cmd.Name() != "version" && cmd.Long == "" {
			t.Errorf("gitfleet %s has no good description", cmd.Name())
		}
	}
}

const referenceHead = `<!-- written by go test ./cmd/gitfleet -update, from what the commands say of themselves -->
# The command line

The commands that ask a daemon find it at ` + "`--server`" + ` or ` + "`$GITFLEET_SERVER`" + `. Which of them answers
which question is in [Reading status](reading-status.md).

| Exit code | Meaning |
|---|---|
| 0 | done, or yes |
| 1 | the answer is no: there are differences or warnings, or it is not so yet |
| 2 | it could not be done, or what was given is wrong; the reason is on standard error |

Colours are for terminals only, and never if ` + "`$NO_COLOR`" + ` is set. ` + "`source <(gitfleet completion bash)`" + `
completes commands, flags, and the names of placements and clusters; bash needs its package
bash-completion for that.

| Command | |
|---|---|
`

// connectionHead tells once what all commands have that ask a daemon.
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
	var at connection
	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	at.bind(shared)
	b.WriteString(connectionHead)
	shared.VisitAll(func(f *pflag.Flag) { describeFlag(&b, f) })
	for _, cmd := range commands {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" && cmd.Name() != "completion" {
			describeCommand(&b, cmd, shared)
			for _, below := range cmd.Commands() {
				describeCommand(&b, below, shared)
			}
		}
	}
	return b.String()
}

func describeCommand(b *strings.Builder, cmd *cobra.Command, shared *pflag.FlagSet) {
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
	asks := cmd.Flags().Lookup("client-key") != nil // all of a connection
	settings := map[string]bool{}
	if cmd.Flags().Lookup("config") != nil {
		c := defaultConfig()
		for _, s := range c.settings() {
			settings[s.flag] = !asks
		}
	}
	var own []*pflag.Flag
	left := false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help" || asks && shared.Lookup(f.Name) != nil:
		case settings[f.Name]:
			left = true
		default:
			own = append(own, f)
		}
	})
	if len(own) > 0 {
		b.WriteString("\n| Flag | Default | |\n|---|---|---|\n")
		for _, f := range own {
			describeFlag(b, f)
		}
	}
	if left {
		b.WriteString("\nEvery [setting](configuration.md#all-settings) is a flag as well.\n")
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
