package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/reconciler/server"
)

// patience is how long a shell waits for names: rather none than late.
const patience = 2 * time.Second

// completeNames has the shell complete the names of placements and clusters for
// every command that asks a daemon. Without a daemon it is silent.
func completeNames(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeNames(cmd)
		if cmd.Flags().Lookup("server") == nil {
			continue
		}
		if cmd.ValidArgsFunction == nil && strings.Contains(cmd.Use, "crp") {
			cmd.ValidArgs = nil
			cmd.ValidArgsFunction = completeArgs
		}
		if cmd.Flags().Lookup("cluster") != nil {
			cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return namesFor(cmd).Clusters, cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
}

// completeArgs completes what stands at the place of an argument: a placement as
// crp/NAME, and after it a cluster; or first a kind, and then a name.
func completeArgs(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	const done = cobra.ShellCompDirectiveNoFileComp
	byKind := strings.Contains(cmd.Use, "crp|")
	switch {
	case len(args) == 0 && byKind && !strings.Contains(begun, "/"):
		return []string{"crp", "rp", "clusters"}, done
	case len(args) == 0:
		return namesFor(cmd).Placements, done
	case len(args) > 1:
		return nil, done
	case byKind:
		return namesOfKind(namesFor(cmd), args[0]), done
	case strings.Contains(cmd.Use, "CLUSTER"):
		return namesFor(cmd).Clusters, done
	}
	return nil, done
}

// namesOfKind are the names that go after a kind.
func namesOfKind(n server.Names, kind string) []string {
	if isClusterKind(kind) {
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

// namesFor asks the daemon that a command would ask; nobody there, no names.
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
