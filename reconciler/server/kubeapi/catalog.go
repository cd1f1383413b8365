package kubeapi

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/printer"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
)

// A catalog has all served kinds. It is immutable.
type catalog struct {
	kinds      []*kind // sorted by group, plural and version
	byResource map[schema.GroupVersionResource]*kind
}

// newCatalog returns gitfleet's kinds and those of a commit's manifests. Each version of a kind
// counts as a separate kind, since only the API server of the kind can convert between
// versions.
func newCatalog(s *hub.Snapshot) *catalog {
	c := &catalog{kinds: slices.Clone(builtIn), byResource: map[schema.GroupVersionResource]*kind{}}
	known := map[schema.GroupKind]bool{}
	for _, k := range c.kinds {
		known[schema.GroupKind{Group: k.group, Kind: k.name}] = true
	}
	if s != nil {
		seen := map[schema.GroupVersionKind]bool{}
		defined := definitions(s)
		for _, o := range s.Objects {
			gvk := o.Content.GroupVersionKind()
			if !seen[gvk] && !known[gvk.GroupKind()] {
				c.kinds = append(c.kinds, manifestKind(gvk, o.ID.Namespace != "", defined[gvk.GroupKind()]))
			}
			seen[gvk] = true
		}
	}
	slices.SortStableFunc(c.kinds, func(a, b *kind) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.plural, b.plural), version.CompareKubeAwareVersionStrings(b.versions[0], a.versions[0]))
	})
	for _, k := range c.kinds {
		for _, v := range k.versions {
			c.byResource[k.resource(v)] = k
		}
	}
	return c
}

func (c *catalog) equal(o *catalog) bool {
	return slices.EqualFunc(c.kinds, o.kinds, func(a, b *kind) bool {
		return a.storeKey() == b.storeKey() && a.namespaced == b.namespaced && slices.Equal(a.short, b.short) && slices.Equal(a.categories, b.categories)
	})
}

// of returns the kinds in a group version.
func (c *catalog) of(gv schema.GroupVersion) []*kind {
	var out []*kind
	for _, k := range c.kinds {
		if k.group == gv.Group && slices.Contains(k.versions, gv.Version) {
			out = append(out, k)
		}
	}
	return out
}

// versions returns the versions of a group, the preferred one first.
func (c *catalog) versions(group string) []string {
	var out []string
	for _, k := range c.kinds {
		for _, v := range k.versions {
			if k.group == group && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	if k := c.first(group); k == nil || k.declared {
		slices.SortFunc(out, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	}
	return out
}

// first returns a kind of the group, preferably one of gitfleet's.
func (c *catalog) first(group string) *kind {
	var out *kind
	for _, k := range c.kinds {
		if k.group == group && (out == nil || out.declared && !k.declared) {
			out = k
		}
	}
	return out
}

func (c *catalog) groups() []string {
	var out []string
	for _, k := range c.kinds {
		if !slices.Contains(out, k.group) {
			out = append(out, k.group)
		}
	}
	return out
}

// manifests returns the sources of all kinds that a commit declares, sorted like the snapshot.
// known are their records in the ledger.
func (c *catalog) manifests(s *hub.Snapshot, known map[api.ID]ledger.Declared) map[schema.GroupVersionResource][]store.Source {
	byKind := map[schema.GroupVersionKind]schema.GroupVersionResource{}
	for _, k := range c.kinds {
		for _, v := range k.versions {
			byKind[k.gvk(v)] = k.storeKey()
		}
	}
	sources := map[schema.GroupVersionResource][]store.Source{}
	for _, o := range s.Objects {
		kind := byKind[o.Content.GroupVersionKind()]
		sources[kind] = append(sources[kind], manifest(o, known[o.ID]))
	}
	id := func(k *kind, namespace, name string) api.ID {
		return api.ID{Group: k.group, Kind: k.name, Namespace: namespace, Name: name}
	}
	for _, o := range s.ClusterOverrides {
		sources[clusterOverrides.storeKey()] = append(sources[clusterOverrides.storeKey()], clusterOverride(o, known[id(clusterOverrides, "", o.Name)]))
	}
	for _, o := range s.Overrides {
		sources[overrides.storeKey()] = append(sources[overrides.storeKey()], override(o, known[id(overrides, o.Namespace, o.Name)]))
	}
	for _, o := range s.Staged {
		spec, ok := o.Spec.(*api.StagedUpdateStrategySpec)
		if !ok {
			continue // runs and requests are in the report
		}
		kind := c.byResource[byKind[schema.GroupVersionKind{Group: o.ID.Group, Version: "v1beta1", Kind: o.ID.Kind}]]
		sources[kind.storeKey()] = append(sources[kind.storeKey()], strategy(kind, o, spec, known[o.ID]))
	}
	for _, o := range s.Budgets {
		sources[budgets.storeKey()] = append(sources[budgets.storeKey()], budget(o, known[id(budgets, "", o.Name)]))
	}
	for _, o := range s.Windows {
		sources[windows.storeKey()] = append(sources[windows.storeKey()], rolloutWindow(o, known[id(windows, "", o.Name)]))
	}
	for _, o := range s.Gates {
		sources[gates.storeKey()] = append(sources[gates.storeKey()], gate(o, known[id(gates, "", o.Name)]))
	}
	for _, kind := range slices.Collect(maps.Keys(sources)) {
		slices.SortStableFunc(sources[kind], store.Compare)
	}
	return sources
}

// A definition has the names in a CustomResourceDefinition.
type definition struct {
	plural, singular  string
	short, categories []string
}

func definitions(s *hub.Snapshot) map[schema.GroupKind]definition {
	out := map[schema.GroupKind]definition{}
	for _, o := range s.Objects {
		if o.ID.Group != "apiextensions.k8s.io" || o.ID.Kind != "CustomResourceDefinition" {
			continue
		}
		text := func(path ...string) string {
			v, _, _ := unstructured.NestedString(o.Content.Object, path...)
			return v
		}
		texts := func(path ...string) []string {
			v, _, _ := unstructured.NestedStringSlice(o.Content.Object, path...)
			return v
		}
		out[schema.GroupKind{Group: text("spec", "group"), Kind: text("spec", "names", "kind")}] = definition{
			text("spec", "names", "plural"), text("spec", "names", "singular"),
			texts("spec", "names", "shortNames"), texts("spec", "names", "categories"),
		}
	}
	return out
}

// shortNames are those of the built-in kinds.
var shortNames = map[string]string{
	"configmaps": "cm", "endpoints": "ep", "limitranges": "limits", "namespaces": "ns", "persistentvolumeclaims": "pvc",
	"persistentvolumes": "pv", "pods": "po", "replicationcontrollers": "rc", "resourcequotas": "quota", "serviceaccounts": "sa",
	"services": "svc", "daemonsets.apps": "ds", "deployments.apps": "deploy", "replicasets.apps": "rs", "statefulsets.apps": "sts",
	"horizontalpodautoscalers.autoscaling": "hpa", "cronjobs.batch": "cj", "ingresses.networking.k8s.io": "ing",
	"networkpolicies.networking.k8s.io": "netpol", "poddisruptionbudgets.policy": "pdb", "priorityclasses.scheduling.k8s.io": "pc",
	"storageclasses.storage.k8s.io": "sc", "customresourcedefinitions.apiextensions.k8s.io": "crd",
}

// all is kubectl's category all.
var all = map[string]bool{
	"pods": true, "services": true, "replicationcontrollers": true, "daemonsets.apps": true, "deployments.apps": true,
	"replicasets.apps": true, "statefulsets.apps": true, "horizontalpodautoscalers.autoscaling": true, "cronjobs.batch": true, "jobs.batch": true,
}

func manifestKind(gvk schema.GroupVersionKind, namespaced bool, d definition) *kind {
	k := &kind{
		group: gvk.Group, name: gvk.Kind, plural: cmp.Or(d.plural, api.Plural(gvk.Kind)), singular: cmp.Or(d.singular, strings.ToLower(gvk.Kind)),
		versions: []string{gvk.Version}, namespaced: namespaced, short: d.short, categories: d.categories,
		columns: printer.Manifests, declared: true,
	}
	name := k.storeKey().GroupResource().String()
	if short := shortNames[name]; short != "" {
		k.short = []string{short}
	}
	if all[name] {
		k.categories = []string{"all"}
	}
	return k
}
