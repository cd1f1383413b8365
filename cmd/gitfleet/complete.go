package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// patience is how long a shell waits for names.
const patience = 2 * time.Second

// A completer completes an argument of a command.
type completer = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// completers complete the arguments of the commands that take names, by their
// paths without "gitfleet".
var completers = map[string]completer{
	"get": completeKinds, "describe": completeKinds,
	"events": completeSubjects, "history": completeSubjects, "suspend": completeSubjects, "resume": completeSubjects,
	"explain": completePlacementAndCluster,
	"tree":    completePlacement, "wait": completePlacement, "rollback": completePlacement, "sync": completePlacement, "diff": completePlacement,
	"drift list": completePlacement, "drift show": completePlacement,
}

// valuesAnnotation has the possible values of a flag.
const valuesAnnotation = "gitfleet.dev/values"

// completeNames adds shell completion of flag values and of the names of placements and
// clusters. Names come from the daemon; without one there are none.
func completeNames(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeNames(cmd)
		if complete := completers[strings.TrimPrefix(cmd.CommandPath(), "gitfleet ")]; complete != nil {
			cmd.ValidArgsFunction = complete
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if values := f.Annotations[valuesAnnotation]; values != nil {
				cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
			}
		})
		if cmd.Flags().Lookup("cluster") != nil && cmd.Flags().Lookup("server") != nil {
			cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return namesFor(cmd).Clusters, cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
}

func completePlacement(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return namesFor(cmd).Placements, cobra.ShellCompDirectiveNoFileComp
}

func completePlacementAndCluster(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return namesFor(cmd).Clusters, cobra.ShellCompDirectiveNoFileComp
	}
	return completePlacement(cmd, args, begun)
}

// completeKinds completes a kind and then a name, or KIND/NAME.
func completeKinds(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 1:
		return namesOfKind(namesFor(cmd), args[0]), cobra.ShellCompDirectiveNoFileComp
	case len(args) > 1 || strings.Contains(begun, "/"):
		return completeSubjects(cmd, args, begun)
	case cmd.Name() == "get":
		return kindsOfGet, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"crp", "mc", "rp"}, cobra.ShellCompDirectiveNoFileComp
}

// namesOfKind returns the names of a kind.
func namesOfKind(n server.Names, kind string) []string {
	if api.NamesClusters(kind) {
		return n.Clusters
	}
	prefix := "crp/"
	if strings.HasPrefix(strings.ToLower(kind), "r") {
		prefix = "rp/"
	}
	var out []string
	for _, p := range n.Placements {
		if name, ok := strings.CutPrefix(p, prefix); ok {
			out = append(out, name)
		}
	}
	return slices.Clip(out)
}

// namesFor requests names from the daemon that a command would use; without a daemon there are
// none.
func namesFor(cmd *cobra.Command) (names server.Names) {
	var at connection
	for name, value := range map[string]*string{
		"server": &at.address, "token-file": &at.tokenFile, "ca-file": &at.caFile, "client-cert": &at.certFile, "client-key": &at.keyFile,
	} {
		*value, _ = cmd.Flags().GetString(name)
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := at.client()
	if err != nil {
		return server.Names{}
	}
	if c.get(ctx, "/names", nil, &names) != nil {
		return server.Names{}
	}
	return names
}
