package membership

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/migration"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/member/account"
)

// examples has the files that init writes, except the clusters.
//
//go:embed examples
var examples embed.FS

// NewInit returns the command init.
func NewInit() *cobra.Command {
	var s initCommand
	cmd := &cobra.Command{
		Use:   "init PATH",
		Short: "Write a starting repository for your clusters",
		Long: `Init writes a directory that can be committed as it is: a MemberCluster for
each context of your kubeconfig, an app, and a placement that puts the app on
every cluster. It reads the names of the contexts only, asks no cluster, and
overwrites no file.

The kubeconfig is that of kubectl: --kubeconfig, or $KUBECONFIG, or
~/.kube/config.

With --from, PATH is an existing repository that was written for Flux, Argo CD
or kustomize. Init proposes a few files that make a fleet of it, says what of
it is not taken and what each cluster would get, and writes the files with
--write only. No file of the repository is changed.

Exit codes with --from: 0 proposed, 1 something in it fails, 2 error.`,
		Example: `  gitfleet init fleet
  gitfleet init fleet --context paris,oslo
  gitfleet validate --strict fleet && gitfleet plan fleet
  gitfleet init --from flux ../fleet-infra
  gitfleet init --from argocd ../deployments --write`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.from != "" {
				return s.propose(cmd.OutOrStdout(), args[0])
			}
			return s.write(cmd.OutOrStdout(), args[0])
		},
	}
	cmd.Flags().StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig whose contexts are the clusters")
	cmd.Flags().StringSliceVar(&s.contexts, "context", nil, "contexts to use; by default all")
	cmd.Flags().StringVar(&s.from, "from", "", "propose files for a repository of this `TOOL`: "+strings.Join(migration.Tools(), ", "))
	cmd.Flags().BoolVar(&s.writes, "write", false, "with --from, write the proposed files")
	return cmd
}

// An initCommand has the arguments of init.
type initCommand struct {
	kubeconfig string
	contexts   []string
	// from is the tool of an existing repository; empty starts a new one. writes says that what is proposed is written.
	from   string
	writes bool
}

func (s *initCommand) write(out io.Writer, dir string) error {
	contexts, err := s.choose()
	if err != nil {
		return err
	}
	files, err := fs.Sub(examples, "examples")
	if err != nil {
		return err
	}
	written := map[string]string{}
	if err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		written[name] = string(text)
		return err
	}); err != nil {
		return err
	}
	renamed := map[string]string{} // contexts by the names of their clusters
	for _, context := range contexts {
		name := clusterName(context)
		file := "clusters/" + name + ".yaml"
		switch _, twice := written[file]; {
		case name == "":
			return fmt.Errorf("context %q: no cluster name can be derived from it; rename it with kubectl config rename-context, or choose others with --context", context)
		case twice:
			return fmt.Errorf("context %q: the cluster name of another context is %s as well; rename one with kubectl config rename-context", context, name)
		case name != context:
			renamed[name] = context
		}
		written[file] = fmt.Sprintf(memberManifest, name)
	}
	if err := writeNew(dir, written); err != nil {
		return err
	}
	return s.report(out, dir, len(contexts), written, renamed)
}

const memberManifest = `apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata:
  name: %s
spec:
  identity: {kind: User, name: gitfleet}
`

// choose returns the contexts to use, sorted.
func (s *initCommand) choose() ([]string, error) {
	known, err := account.Contexts(s.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w; name another with --kubeconfig", err)
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("the kubeconfig has no context (%s); name another with --kubeconfig or $KUBECONFIG", strings.Join(account.Kubeconfigs(s.kubeconfig), ", "))
	}
	if len(s.contexts) == 0 {
		return known, nil
	}
	for _, name := range s.contexts {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--context %s: the kubeconfig has no such context; it has %s", name, strings.Join(known, ", "))
		}
	}
	chosen := slices.Clone(s.contexts)
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

var noName = regexp.MustCompile(`[^a-z0-9.-]+`)

// clusterName derives the name of an object from the name of a context, such as prod-eu from
// arn:aws:eks:eu-west-1:1234:cluster/prod-eu; empty if it cannot.
func clusterName(context string) string {
	name := context[strings.LastIndex(context, "/")+1:]
	name = strings.Trim(noName.ReplaceAllString(strings.ToLower(name), "-"), ".-")
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

// report lists what was written, and what to do next.
func (s *initCommand) report(out io.Writer, dir string, clusters int, files, renamed map[string]string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "wrote %s:\n", output.Count(clusters, "cluster"))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "  %s\n", filepath.Join(dir, name))
	}
	for _, name := range slices.Sorted(maps.Keys(renamed)) {
		fmt.Fprintf(&b, "\nThe daemon finds the credentials of %s under the context of that name:\n  kubectl config rename-context %s %s\n", name, renamed[name], name)
	}
	fmt.Fprintf(&b, "\nNext:\n  gitfleet validate --strict %[1]s\n  gitfleet plan %[1]s\n  git -C %[1]s init --initial-branch=main && git -C %[1]s add . && git -C %[1]s commit -m \"Start the fleet\"\n", dir)
	_, err := io.WriteString(out, b.String())
	return err
}
