// Package discovery determines how a cluster serves kinds.
//
// Kinds records the kinds in use. A Finder is for kinds of which objects are to be removed: it
// proves that a kind is gone.
package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
)

// Kinds records how the cluster serves the kinds in use, and nothing about other kinds. A known
// kind is not requested again.
type Kinds struct {
	client func() (*discovery.DiscoveryClient, error) // created when needed, since it is large
	known  []unique.Handle[knownKind]                 // few kinds, which are the same on most clusters
	// failed are the group versions whose last discovery failed, such as those of an aggregated
	// API that is down.
	failed map[schema.GroupVersion]error
	// lookups are the lookups of kinds that the server did not serve.
	lookups map[schema.GroupVersionKind]lookup
	// forgotten are the kinds that the server does not serve any more.
	forgotten map[schema.GroupVersionKind]bool
}

// A knownKind is a kind and how it is served.
type knownKind struct {
	gvk schema.GroupVersionKind
	connection.Resource
}

// New returns an empty record. client is called for each request to the API server.
func New(client func() (*discovery.DiscoveryClient, error)) *Kinds {
	return &Kinds{client: client}
}

// Of returns how a kind is served, and whether that is known.
func (k *Kinds) Of(gvk schema.GroupVersionKind) (connection.Resource, bool) {
	for _, h := range k.known {
		if known := h.Value(); known.gvk == gvk {
			return known.Resource, true
		}
	}
	return connection.Resource{}, false
}

// Add records how a kind is served.
func (k *Kinds) Add(gvk schema.GroupVersionKind, r connection.Resource) {
	k.known = append(k.known, unique.Make(knownKind{gvk, r}))
}

// Forget drops what is known of a kind, because the server has answered that it does not serve it any
// more. The kind can be resolved again.
func (k *Kinds) Forget(gvk schema.GroupVersionKind) {
	k.known = slices.DeleteFunc(k.known, func(h unique.Handle[knownKind]) bool { return h.Value().gvk == gvk })
	if k.forgotten == nil {
		k.forgotten = map[schema.GroupVersionKind]bool{}
	}
	k.forgotten[gvk] = true
}

// Count returns the number of kinds that are known.
func (k *Kinds) Count() int { return len(k.known) }

// Failure returns the error of the last discovery of a group version; nil if it succeeded.
func (k *Kinds) Failure(gv schema.GroupVersion) error { return k.failed[gv] }

// Resolve determines how kinds are served. Afterwards, a kind that is not in known is either
// not served, or failed has the reason why that could not be determined. An error means that
// the server did not respond at all. A kind that was not resolved is requested again only when
// its lookup is due.
func (k *Kinds) Resolve(ctx context.Context, wanted map[schema.GroupVersionKind]bool) error {
	missing, now := map[schema.GroupVersion]bool{}, time.Now()
	for gvk := range wanted {
		if _, ok := k.Of(gvk); !ok && !now.Before(k.NextLookup(gvk)) {
			missing[gvk.GroupVersion()] = true
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := k.ask(ctx, missing, wanted); err != nil {
		return err
	}
	k.lookedUp(wanted, missing)
	return k.findVersions(ctx, missing, wanted)
}

// ask requests group versions, several at a time, and records the wanted kinds in them. A request
// without a response is a failure of its group version only, if the server has responded to
// another request, or the group version has failed before.
func (k *Kinds) ask(ctx context.Context, missing map[schema.GroupVersion]bool, wanted map[schema.GroupVersionKind]bool) error {
	client, err := k.client()
	if err != nil {
		return err
	}
	gvs := slices.Collect(maps.Keys(missing))
	lists, errs := make([]*metav1.APIResourceList, len(gvs)), make([]error, len(gvs))
	var asking errgroup.Group
	asking.SetLimit(4)
	for i, gv := range gvs {
		asking.Go(func() error {
			lists[i], errs[i] = client.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
			return nil
		})
	}
	asking.Wait() // nolint:errcheck // recorded for each group version
	responds := slices.ContainsFunc(errs, func(err error) bool { return err == nil || connection.Answered(err) })
	var unanswered error
	for i, gv := range gvs {
		switch err := errs[i]; {
		case err == nil:
			delete(k.failed, gv)
			k.record(gv, lists[i], wanted)
		case connection.NotFound(err):
			delete(k.failed, gv)
		case connection.Answered(err):
			k.fail(gv, unavailable(ctx, client, gv, err))
		case responds || k.failed[gv] != nil:
			k.fail(gv, fmt.Errorf("ask for the kinds of %s: %w", gv, connection.Plain(err)))
		default:
			unanswered = fmt.Errorf("ask for the kinds of %s: %w", gv, err)
		}
	}
	return unanswered
}

func (k *Kinds) fail(gv schema.GroupVersion, err error) {
	if k.failed == nil {
		k.failed = map[schema.GroupVersion]error{}
	}
	k.failed[gv] = err
}

// findVersions finds the other versions in which the server serves the kinds that it was asked for in
// vain. An error means that the server did not respond when it was asked for the versions of a group.
func (k *Kinds) findVersions(ctx context.Context, asked map[schema.GroupVersion]bool, wanted map[schema.GroupVersionKind]bool) error {
	client, err := k.client()
	if err != nil {
		return err
	}
	versions := map[string][]string{} // by group
	for gvk := range wanted {
		if _, known := k.Of(gvk); known || !asked[gvk.GroupVersion()] || k.failed[gvk.GroupVersion()] != nil {
			continue
		}
		if _, known := versions[gvk.Group]; !known {
			versions[gvk.Group], err = versionsOf(ctx, client.RESTClient(), gvk.Group)
			if err != nil && !connection.Answered(err) {
				return fmt.Errorf("ask for the versions of %s: %w", gvk.Group, err)
			}
		}
		l := k.lookups[gvk]
		l.versions = k.servedIn(ctx, gvk, versions[gvk.Group])
		k.lookups[gvk] = l
	}
	return nil
}

// servedIn returns the other ones of some versions in which the server serves a kind. Versions that
// cannot be asked for are left out, also if nothing answers: an aggregated API server may be down.
func (k *Kinds) servedIn(ctx context.Context, gvk schema.GroupVersionKind, versions []string) (found []string) {
	for _, version := range versions {
		other := gvk.GroupKind().WithVersion(version)
		if version == gvk.Version {
			continue
		}
		in := New(k.client)
		err := in.ask(ctx, map[schema.GroupVersion]bool{other.GroupVersion(): true}, map[schema.GroupVersionKind]bool{other: true})
		if r, ok := in.Of(other); err == nil && ok {
			found = append(found, r.Version)
		}
	}
	return found
}

// record records how the wanted kinds of a group version are served.
func (k *Kinds) record(gv schema.GroupVersion, list *metav1.APIResourceList, wanted map[schema.GroupVersionKind]bool) {
	for _, r := range list.APIResources {
		gvk := gv.WithKind(r.Kind)
		if _, known := k.Of(gvk); !known && wanted[gvk] && !strings.Contains(r.Name, "/") {
			k.Add(gvk, connection.Resource{GroupVersionResource: gv.WithResource(r.Name), Namespaced: r.Namespaced})
		}
	}
}

// Why returns the reason why a kind is not known.
func (k *Kinds) Why(gvk schema.GroupVersionKind) error {
	if err := k.failed[gvk.GroupVersion()]; err != nil {
		return err
	}
	none := fmt.Errorf("no matches for kind %q in version %q", gvk.Kind, gvk.GroupVersion())
	versions := k.lookups[gvk].versions
	custom := strings.Contains(gvk.Group, ".") && !strings.HasSuffix(gvk.Group, ".k8s.io")
	switch {
	case custom:
		return &MissingDefinition{none, gvk, versions, k.forgotten[gvk]}
	case len(versions) > 0:
		return fmt.Errorf("%w: %s", none, otherVersions(gvk, versions, k.forgotten[gvk]))
	}
	return fmt.Errorf("%w: the Kubernetes of the cluster does not have it: use a version that it has, or place the object on other clusters", none)
}

// otherVersions says in which versions the cluster serves a kind, and how to fix the manifest.
func otherVersions(gvk schema.GroupVersionKind, versions []string, forgotten bool) string {
	not := "does not serve"
	if forgotten {
		not = "no longer serves"
	}
	return fmt.Sprintf("the cluster %s %s of kind %s; it serves %s: change apiVersion in Git", not, gvk.GroupVersion(), gvk.Kind, strings.Join(versions, ", "))
}

// A MissingDefinition says that a cluster has no CustomResourceDefinition of a kind, or none with
// its version.
type MissingDefinition struct {
	// NoMatch says that the cluster does not serve the kind.
	NoMatch error
	gvk     schema.GroupVersionKind
	// versions are those in which the cluster serves it, and forgotten says that it served it in
	// the missing one.
	versions  []string
	forgotten bool
}

// Error says what is missing and how to fix it.
func (n *MissingDefinition) Error() string {
	if len(n.versions) > 0 {
		return fmt.Sprintf("%v: %s", n.NoMatch, otherVersions(n.gvk, n.versions, n.forgotten))
	}
	has := "has no"
	if n.forgotten {
		has = "no longer has a"
	}
	return fmt.Sprintf("%v: the cluster %s CustomResourceDefinition of kind %s in group %s with version %s: place it together with the object, or install it there; it is looked for every few minutes",
		n.NoMatch, has, n.gvk.Kind, n.gvk.Group, n.gvk.Version)
}

// Defines reports whether a CustomResourceDefinition defines a kind.
func Defines(crd *unstructured.Unstructured, gvk schema.GroupVersionKind) bool {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	if group != gvk.Group || kind != gvk.Kind {
		return false
	}
	field, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions") // not copied, since the schemas in it are large
	versions, _ := field.([]any)
	return slices.ContainsFunc(versions, func(v any) bool {
		version, _ := v.(map[string]any)
		return version["name"] == gvk.Version && version["served"] == true
	})
}

// Resources returns how a cluster serves some kinds. Kinds that it does not serve are left out.
func Resources(ctx context.Context, cfg *rest.Config, wanted map[schema.GroupVersionKind]bool) (rbac.Resources, error) {
	known := New(func() (*discovery.DiscoveryClient, error) {
		return discovery.NewDiscoveryClientForConfig(connection.Bounded(cfg))
	})
	if err := known.Resolve(ctx, wanted); err != nil {
		return nil, connection.Plain(err)
	}
	resources := rbac.Resources{}
	for gvk := range wanted {
		if err := known.Failure(gvk.GroupVersion()); err != nil && !connection.Answered(err) {
			return nil, err
		}
		if r, ok := known.Of(gvk); ok {
			resources[gvk] = r.GroupResource()
		}
	}
	return resources, nil
}
