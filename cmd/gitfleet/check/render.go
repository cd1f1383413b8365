package check

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// NewRender returns the command render.
func NewRender() *cobra.Command {
	var r offline.Reader
	var show renderer
	var clusters, to, branch string
	cmd := &cobra.Command{
		Use:   "render PATH|REPO@REF",
		Short: "Print or write the manifests that each cluster would get; offline",
		Long: `Print, as YAML, the manifests that each cluster gets once every rollout is
over: kustomizations built, envelopes opened, overrides applied. A comment
before each document names its file and its placement. PATH and REPO@REF are as
for validate.

Left out are the label ` + api.ManagedByLabel + ` and the annotations of
gitfleet, which the daemon adds. Values of Secrets are masked unless
--show-secrets is set.

With --to, each object is written into a file of its own instead:
DIR/CLUSTER/NAMESPACE/KIND.NAME.yaml, for cluster-scoped objects
DIR/CLUSTER/KIND.NAME.yaml. The directory of a cluster is replaced as a whole,
or kept if a part of its content cannot be rendered; that of a cluster which is
gone is removed. Nothing else in DIR is touched.

With --to-branch, the same files are written to a branch of the clone instead,
without a checkout: one commit for each commit that is rendered, which it names,
and none if nothing differs. PATH is DIRECTORY@REF then. Push the branch with
git push.

Exit codes: 0 printed, 1 there is no such cluster, 2 error, also if a manifest
would not be sent.`,
		Example: `  gitfleet render . --cluster member-1
  gitfleet get clusters -o yaml > ../clusters.yaml
  gitfleet render . --clusters ../clusters.yaml
  gitfleet render . --cluster member-1 --show-secrets | kubectl diff -f -
  gitfleet render . --to ../rendered && git -C ../rendered add -A
  gitfleet render .@HEAD --to-branch rendered && git push origin rendered`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			snapshot, err := r.Read(cmd.Context(), cmd.Flags(), args[0])
			if bad, ok := errors.AsType[*hub.LoadError](err); ok {
				fmt.Fprintf(cmd.ErrOrStderr(), "gitfleet: %s does not load:\n", args[0])
				if err := writeText(cmd.ErrOrStderr(), findingsOf(bad.Problems)); err != nil {
					return err
				}
				return exit.Failed
			}
			if err != nil {
				return err
			}
			o, err := offline.Plan(snapshot, clusters)
			if err != nil {
				return err
			}
			show.cluster = api.ClusterName(show.cluster)
			show.snapshot, show.out, show.notes = snapshot, output.Raw(cmd.OutOrStdout()), cmd.ErrOrStderr()
			switch {
			case to != "" && branch != "":
				return errors.New("--to and --to-branch exclude each other")
			case to != "":
				return show.writeTo(to, o.Plan)
			case branch != "":
				return show.writeToBranch(args[0], branch, snapshot.Commit, o.Plan)
			}
			return show.print(o.Plan)
		},
	}
	cmd.Flags().StringVar(&show.cluster, "cluster", "", "print only the manifests of this member cluster")
	cmd.Flags().BoolVar(&show.secrets, "show-secrets", false, "print the values of Secrets")
	cmd.Flags().StringVar(&to, "to", "", "write one file per object below this `DIR` instead of printing them")
	cmd.Flags().StringVar(&branch, "to-branch", "", "add a commit with these files to this `BRANCH` of the clone instead")
	cmd.Flags().StringVar(&clusters, "clusters", "", clustersUsage)
	r.Bind(cmd.Flags())
	return cmd
}

func (r *renderer) print(p *plan.Plan) error {
	names, err := r.clusters(p)
	if err != nil {
		return err
	}
	r.invalid(p)
	for _, name := range names {
		if err := r.section(p, name); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return r.finish(p)
}

// section prints the objects that one cluster gets, by placement and in the order in which they
// are applied.
func (r *renderer) section(p *plan.Plan, cluster string) error {
	fmt.Fprintf(r.out, "# cluster %s\n", cluster)
	for pl := range p.Placements.Values() {
		for _, c := range pl.Clusters {
			if c.Binding.Cluster != cluster {
				continue
			}
			if err := r.placement(pl, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *renderer) placement(p *plan.Placement, c *plan.OnCluster) error {
	if c.Err != nil {
		r.unrendered(p, c)
	}
	for _, refused := range c.Content.Refused {
		r.problem(fmt.Sprintf("%s: %s is not sent: %s", refused.Origin, objectName(refused.Manifest), refused.Message()))
	}
	for _, m := range c.Content.Manifests {
		if c.Leaves(m.ID) {
			fmt.Fprintf(r.out, "# %s\n", output.Escape(fmt.Sprintf("%s of %s is left to %s", objectName(m), p.Key, holder(c, m.ID))))
			continue
		}
		if err := r.document(p, m); err != nil {
			return err
		}
	}
	return nil
}

// holder returns the placement that an object belongs to instead.
func holder(c *plan.OnCluster, id api.ID) api.PlacementKey {
	for _, y := range c.Unusual().Yielded {
		if y.ID == id {
			return y.To
		}
	}
	return api.PlacementKey{}
}

func (r *renderer) document(p *plan.Placement, m *work.Manifest) error {
	text, err := r.text(m)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.out, "---\n# %s\n%s", output.Escape(provenance(m.Origin.String(), p, m)), text)
	return err
}
