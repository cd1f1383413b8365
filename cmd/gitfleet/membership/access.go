package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/account"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// memberAccess determines the permissions of an account.
type memberAccess struct {
	path             string // a checkout; empty if there is none
	cluster          string // a member; empty for all
	clusterAdmin     bool
	deleteNamespaces bool
}

func (a *memberAccess) bind(f *pflag.FlagSet) {
	f.BoolVar(&a.clusterAdmin, "cluster-admin", false, "grant the account all permissions")
	f.BoolVar(&a.deleteNamespaces, "delete-namespaces", false, "permit listing objects of all kinds, including Secrets: gitfleet deletes a Namespace only if it has no objects of others")
}

// derivedRoles are permissions with their sources.
type derivedRoles struct {
	roles rbac.Roles
	// declared is the file that declares the member; empty if none does.
	declared string
	// fleets are the fleets that have objects on the cluster, sorted, if the cluster was read.
	fleets []string
}

// roles derives the permissions of the account on a cluster. If the checkout does not declare
// the member, the manifest does, which may be empty. target is the cluster, if its kinds and
// inventories may be read; nil if not.
func (a *memberAccess) roles(ctx context.Context, manifest string, target *account.Target) (*derivedRoles, error) {
	d := &derivedRoles{roles: rbac.Everything()}
	var objects []*unstructured.Unstructured
	resources := rbac.Resources{}
	if a.path != "" {
		s, err := offline.ReadDir(a.path, settings.Default().HubOptions())
		if err != nil {
			return nil, err
		}
		if s, d.declared, err = a.declare(s, manifest); err != nil {
			return nil, err
		}
		if objects, err = a.placed(s); err != nil {
			return nil, err
		}
		for _, o := range s.Objects {
			resources.Define(o.Content)
		}
	}
	if a.clusterAdmin {
		return d, nil
	}
	var held []inventory.Holding
	if target != nil {
		var err error
		if held, err = inventory.Holdings(ctx, target.Config); err != nil {
			return nil, err
		}
		for _, h := range held {
			d.fleets = append(d.fleets, h.Fleet)
		}
		slices.Sort(d.fleets)
		d.fleets = slices.Compact(d.fleets)
		served, err := discovery.Resources(ctx, target.Config, kindsOf(objects, held))
		if err != nil {
			return nil, err
		}
		for gvk, r := range served {
			resources[gvk] = r
		}
	}
	var content rbac.Content
	grants := rbac.Grants{ListAll: a.deleteNamespaces}
	for _, o := range objects {
		rbac.Collect(o, resources, &content, &grants)
	}
	kindsHeld(held, &content, resources)
	d.roles = content.Roles(grants)
	return d, nil
}

// declare returns a snapshot that declares the member, and the file that does.
func (a *memberAccess) declare(s *hub.Snapshot, manifest string) (*hub.Snapshot, string, error) {
	for _, c := range s.Clusters {
		if c.Name == a.cluster {
			return s, c.Origin.Path, nil
		}
	}
	if manifest == "" {
		names := make([]string, len(s.Clusters))
		for i, c := range s.Clusters {
			names[i] = c.Name
		}
		return s, "", lookup.Name("cluster", a.cluster, names)
	}
	joined, err := hub.ReadClusters("the MemberCluster", []byte(manifest))
	if err != nil {
		return nil, "", err
	}
	out := *s
	out.Clusters = slices.Clone(s.Clusters)
	for _, c := range joined {
		out.Clusters = append(out.Clusters, c.Cluster)
	}
	slices.SortFunc(out.Clusters, func(a, b *hub.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return &out, "", nil
}

// jobs is the kind of what gates run.
var jobs = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}

// placed returns the objects that the cluster gets, or any cluster if no cluster is given, and a Job in
// each namespace in which gates run Jobs for them. The content of placements that may select the cluster
// later is included.
func (a *memberAccess) placed(s *hub.Snapshot) ([]*unstructured.Unstructured, error) {
	o, err := offline.Input{}.Forecast(s)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	add := func(manifests []*work.Manifest) {
		for _, m := range manifests {
			objects = append(objects, m.Object.Content)
		}
	}
	open := offline.UnknownSelections(o.Plan)
	for p := range o.Plan.Placements.Values() {
		selected := false
		for _, c := range p.Clusters {
			if a.cluster == "" || a.cluster == c.Binding.Cluster {
				selected = true
				add(c.Content.Manifests)
			}
		}
		policy := p.Spec.Spec.Policy
		if open[p.Key] || policy != nil && policy.PlacementType == api.PickN { // which may select other clusters later
			selected = true
			add(work.NewRenderer(p.Key, p.Selection.Objects, nil, nil, plan.Scope(s)).Manifests())
		}
		if selected {
			for _, namespace := range s.JobNamespaces(p.Key) {
				job := &unstructured.Unstructured{}
				job.SetGroupVersionKind(jobs)
				job.SetNamespace(namespace)
				objects = append(objects, job)
			}
		}
	}
	return objects, nil
}

func kindsOf(objects []*unstructured.Unstructured, held []inventory.Holding) map[schema.GroupVersionKind]bool {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, o := range objects {
		kinds[o.GroupVersionKind()] = true
	}
	for _, h := range held {
		for _, o := range h.Objects {
			kinds[o.GroupVersionKind()] = true
		}
	}
	return kinds
}

// newMemberRBAC returns the command member rbac.
func newMemberRBAC() *cobra.Command {
	var at memberTarget
	var a memberAccess
	var out output.Format
	cmd := &cobra.Command{
		Use:   "rbac [PATH]",
		Short: "Print the service account and the permissions that a member needs",
		Long: `Print what join creates on a member, except for the Secret with the token: the
namespace, the service account, a ClusterRole, a Role in the namespace of the
inventories, and their bindings. They permit what it takes to place the content
of the checkout PATH on the cluster, now or later, and nothing else. JSON is one
List.

By default no cluster is asked: the plurals of kinds come from the
CustomResourceDefinitions of the checkout, or from their names. With --context
the cluster is asked for them, and the kinds that gitfleet already holds there
are included; use it for a member that exists.`,
		Example: `  gitfleet member rbac fleet --cluster paris --context paris > paris.yaml
  gitfleet member rbac fleet
  gitfleet member rbac --cluster-admin`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.path, a.cluster = strings.Join(args, ""), api.ClusterName(a.cluster)
			if a.path == "" && !a.clusterAdmin {
				return fmt.Errorf("name a checkout, or set --cluster-admin; write %s", cmd.UseLine())
			}
			var target *account.Target
			if at.context != "" {
				var err error
				if target, err = at.find(); err != nil {
					return err
				}
			}
			derived, err := a.roles(cmd.Context(), "", target)
			if err != nil {
				return err
			}
			needed, err := at.accountOf(a.cluster)
			if err != nil {
				return err
			}
			needed.Roles = derived.roles
			if out.IsText() {
				return writeYAML(cmd.OutOrStdout(), needed.Manifests()...)
			}
			return out.Write(cmd.OutOrStdout(), map[string]any{"apiVersion": "v1", "kind": "List", "items": needed.Manifests()})
		},
	}
	cmd.Flags().StringVar(&a.cluster, "cluster", "", "member cluster; by default the permissions cover the content of all members")
	a.bind(cmd.Flags())
	at.bind(cmd.Flags())
	out.Bind(cmd.Flags(), "yaml")
	return cmd
}

// writeYAML writes objects as documents, without fields that are empty.
func writeYAML(w io.Writer, objects ...any) error {
	w = output.Raw(w)
	for _, o := range objects {
		raw, err := json.Marshal(o)
		if err != nil {
			return err
		}
		var plain map[string]any
		if err := json.Unmarshal(raw, &plain); err != nil {
			return err
		}
		for key, value := range plain {
			if fields, ok := value.(map[string]any); ok && len(fields) == 0 || value == nil {
				delete(plain, key)
			}
		}
		text, err := yaml.Marshal(plain)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}
