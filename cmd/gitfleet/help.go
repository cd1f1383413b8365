package main

import (
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
)

// The groups of commands in the help of gitfleet.
const (
	groupFleet      = "fleet"
	groupOperate    = "operate"
	groupRepository = "repository"
	groupDaemon     = "daemon"
)

var commandGroups = []*cobra.Group{
	{ID: groupFleet, Title: "See the fleet:"},
	{ID: groupOperate, Title: "Operate it:"},
	{ID: groupRepository, Title: "Check a repository:"},
	{ID: groupDaemon, Title: "Run the daemon:"},
}

// grouped adds commands in a group to the root.
func grouped(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.GroupID = group
	}
	root.AddCommand(commands...)
}

// arrangeHelp makes the help of every command show its own flags first, in the order in which
// they were added, and then those of the connection.
func arrangeHelp(root *cobra.Command) {
	addHelpFuncs()
	const own = "{{if .HasAvailableLocalFlags}}\n\nFlags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}"
	template := strings.Replace(root.UsageTemplate(), own, "{{flagGroups .}}", 1)
	// A group of commands is runnable only to report unknown commands.
	root.SetUsageTemplate(strings.Replace(template, "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	unsortFlags(root)
}

// addHelpFuncs adds the functions that the usage template calls. It runs once:
// cobra keeps template functions in a global map that has no lock.
var addHelpFuncs = sync.OnceFunc(func() { cobra.AddTemplateFunc("flagGroups", flagGroups) })

func unsortFlags(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	for _, below := range cmd.Commands() {
		unsortFlags(below)
	}
}

// flagGroups returns the flags of a command as its help shows them.
func flagGroups(cmd *cobra.Command) string {
	own, connection := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags, connection.SortFlags = false, false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if client.IsConnectionFlag(f) {
			connection.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	width := output.PageOf(cmd.OutOrStdout()).Width
	var b strings.Builder
	for _, group := range []struct {
		title string
		flags *pflag.FlagSet
	}{{"Flags", own}, {"Connection", connection}} {
		if group.flags.HasAvailableFlags() {
			b.WriteString("\n\n" + group.title + ":\n" + strings.TrimRight(group.flags.FlagUsagesWrapped(width), "\n"))
		}
	}
	return b.String()
}
