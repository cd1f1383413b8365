package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/view"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// completionTimeout is how long shell completion waits for names.
const completionTimeout = 2 * time.Second

// completers complete the arguments of the commands that take names, by their paths without
// "gitfleet". They get a function that asks the daemon for the names, the arguments so far, and
// what is typed of the next one.
var completers = map[string]func(known func() server.Names, args []string, toComplete string) []string{
	"get": completeKinds(view.Kinds), "describe": completeKinds([]string{"crp", "mc", "rp"}),
	"events": completeSubjects, "history": completeSubjects, "suspend": completeSubjects, "resume": completeSubjects, "approve": completeSubjects,
	"explain": completePlacementAndCluster, "evict": completePlacementAndCluster, "drain": completeCluster, "uncordon": completeCluster,
	"freeze": completePlacement, "unfreeze": completePlacement,
	"tree": completePlacement, "wait": completePlacement, "rollback": completePlacement, "sync": completePlacement, "diff": completePlacement,
	"drift list": completePlacement, "drift show": completePlacement,
}

// completeNames adds shell completion of flag values and of the names of placements and
// clusters. The names come from the daemon; without a daemon there are none.
func completeNames(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeNames(cmd)
		path := strings.TrimPrefix(cmd.CommandPath(), "gitfleet ")
		if complete := completers[path]; complete != nil {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
				return complete(func() server.Names { return namesFor(cmd) }, args, toComplete), cobra.ShellCompDirectiveNoFileComp
			}
		} else if strings.HasPrefix(path, "proposals ") && path != "proposals list" {
			cmd.ValidArgsFunction = completeProposals
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if values := f.Annotations[output.ValuesAnnotation]; values != nil {
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

func completePlacement(known func() server.Names, args []string, _ string) []string {
	if len(args) > 0 {
		return nil
	}
	return known().Placements
}

func completePlacementAndCluster(known func() server.Names, args []string, toComplete string) []string {
	if len(args) == 1 {
		return known().Clusters
	}
	return completePlacement(known, args, toComplete)
}

func completeCluster(known func() server.Names, args []string, _ string) []string {
	if len(args) > 0 {
		return nil
	}
	return known().Clusters
}

// completeSubjects completes a placement or a cluster.
func completeSubjects(known func() server.Names, args []string, _ string) []string {
	if len(args) > 0 {
		return nil
	}
	names := known()
	all := slices.Clone(names.Placements)
	for _, c := range names.Clusters {
		all = append(all, "cluster/"+c)
	}
	return all
}

// completeKinds returns a function that completes a kind and then a name, or KIND/NAME.
func completeKinds(kinds []string) func(func() server.Names, []string, string) []string {
	return func(known func() server.Names, args []string, toComplete string) []string {
		switch {
		case len(args) == 1:
			return namesOfKind(known, args[0])
		case len(args) > 1 || strings.Contains(toComplete, "/"):
			return completeSubjects(known, args, toComplete)
		}
		return kinds
	}
}

// namesOfKind returns the names of a kind.
func namesOfKind(known func() server.Names, kind string) []string {
	if api.NamesClusters(kind) {
		return known().Clusters
	}
	prefix := "crp/"
	if strings.HasPrefix(strings.ToLower(kind), "r") {
		prefix = "rp/"
	}
	var out []string
	for _, p := range known().Placements {
		if name, ok := strings.CutPrefix(p, prefix); ok {
			out = append(out, name)
		}
	}
	return out
}

// completeProposals completes the name of a held change.
func completeProposals(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var list proposal.HeldList
	if len(args) > 0 || !answers(cmd, "/proposals", &list) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range list.Items {
		names = append(names, output.ShortHash(list.Items[i].Name)+"\t"+output.Sanitize(list.Items[i].Object.ID().String()))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// namesFor requests the names from the daemon that a command would use; none without a daemon.
func namesFor(cmd *cobra.Command) server.Names {
	var names server.Names
	if !answers(cmd, "/names", &names) {
		return server.Names{}
	}
	return names
}

// answers reports whether the daemon that a command would use responds to a request in time.
func answers(cmd *cobra.Command, path string, into any) bool {
	at := client.ConnectionOf(cmd.Flags())
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	c, err := at.Client()
	return err == nil && c.Get(ctx, path, nil, into) == nil
}
