package member

import (
	"context"
	"errors"
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

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// kinds records how the cluster serves the kinds in use. It asks the server as rarely as
// possible, and keeps only what it needs.
type kinds struct {
	client func() (*discovery.DiscoveryClient, error) // made on demand: it is large
	known  []unique.Handle[knownKind]                 // few, and on most clusters the same
	// failed are the group versions whose last discovery failed, such as those of an aggregated
	// API whose server is down.
	failed map[schema.GroupVersion]error
	asked  bool
	// lookups are those of kinds that the server did not serve.
	lookups map[schema.GroupVersionKind]*lookup
}

// A knownKind is a kind and how it is served.
type knownKind struct {
	gvk schema.GroupVersionKind
	connection.Resource
}

func newKinds(client func() (*discovery.DiscoveryClient, error)) *kinds {
	return &kinds{client: client}
}

// of returns how a kind is served, and whether that is known.
func (k *kinds) of(gvk schema.GroupVersionKind) (connection.Resource, bool) {
	for _, h := range k.known {
		if known := h.Value(); known.gvk == gvk {
			return known.Resource, true
		}
	}
	return connection.Resource{}, false
}

// resolve finds out how kinds are served. Afterwards, a kind that is not in known is not
// served, or failed says why that could not be determined; err means that the server did not
// answer at all. A kind that was not served is asked for again only when its lookup is due.
func (k *kinds) resolve(ctx context.Context, wanted map[schema.GroupVersionKind]bool) error {
	missing, now := map[schema.GroupVersion]bool{}, time.Now()
	for gvk := range wanted {
		if _, ok := k.of(gvk); !ok && k.due(gvk, now) {
			missing[gvk.GroupVersion()] = true
			delete(k.failed, gvk.GroupVersion())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := k.ask(ctx, missing, wanted); err != nil {
		return err
	}
	k.lookedUp(wanted, missing)
	return nil
}

// ask requests group versions, in as few requests as possible.
func (k *kinds) ask(ctx context.Context, missing map[schema.GroupVersion]bool, wanted map[schema.GroupVersionKind]bool) error {
	client, err := k.client()
	if err != nil {
		return err
	}
	if !k.asked && len(missing) > 2 {
		if all, err := k.resolveAll(ctx, client, wanted); all || err != nil {
			return err
		}
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
	asking.Wait() //nolint:errcheck // each group version has its own
	for i, gv := range gvs {
		switch err := errs[i]; {
		case err == nil:
			k.note(gv, lists[i], wanted)
		case connection.NotFound(err):
		case connection.Answered(err):
			k.fail(gv, err)
		default:
			return fmt.Errorf("ask for the kinds of %s: %w", gv, err)
		}
	}
	return nil
}

// resolveAll requests all group versions at once, in two requests. It reports whether the
// server supports that.
func (k *kinds) resolveAll(ctx context.Context, client *discovery.DiscoveryClient, wanted map[schema.GroupVersionKind]bool) (bool, error) {
	_, byGV, failed, err := client.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return false, fmt.Errorf("ask for the kinds: %w", err)
	}
	k.asked = true
	for gv, list := range byGV {
		k.note(gv, list, wanted)
	}
	for gv, err := range failed {
		k.fail(gv, err)
	}
	return byGV != nil, nil
}

func (k *kinds) fail(gv schema.GroupVersion, err error) {
	if k.failed == nil {
		k.failed = map[schema.GroupVersion]error{}
	}
	k.failed[gv] = err
}

// why returns why a kind is not known.
func (k *kinds) why(gvk schema.GroupVersionKind) error {
	if err := k.failed[gvk.GroupVersion()]; err != nil {
		return err
	}
	none := fmt.Errorf("no matches for kind %q in version %q", gvk.Kind, gvk.GroupVersion())
	if !strings.Contains(gvk.Group, ".") || strings.HasSuffix(gvk.Group, ".k8s.io") {
		return fmt.Errorf("%w: the Kubernetes of the cluster does not have it: use a version that it has, or place the object on other clusters", none)
	}
	return &missingDefinition{none, gvk}
}

// A missingDefinition says that a cluster has no definition of a kind.
type missingDefinition struct {
	error
	gvk schema.GroupVersionKind
}

// Error says what is missing, and how to fix it.
func (n *missingDefinition) Error() string {
	return fmt.Sprintf("%v: the cluster has no CustomResourceDefinition of kind %s in group %s with version %s: place it together with the object, or install it there; it is looked for every few minutes",
		n.error, n.gvk.Kind, n.gvk.Group, n.gvk.Version)
}

// unknownKind returns why a kind is not known. If its definition is placed here too, the kind
// only waits for that.
func (s *session) unknownKind(gvk schema.GroupVersionKind) error {
	err := s.kinds.why(gvk)
	var none *missingDefinition
	if !errors.As(err, &none) {
		return err
	}
	if by := s.definition(gvk); by != nil {
		if t := s.trouble[by.manifest.ID]; t != nil && t.cond.Status != metav1.ConditionTrue || s.reports(by.placement) || s.spared(by.placement, by.manifest.ID) != "" {
			return fmt.Errorf("%w: its CustomResourceDefinition %s, which %s places here, is not applied: see why there", none.error, by.manifest.ID.Name, by.placement)
		}
		return &pendingDefinition{fmt.Errorf("%w: its CustomResourceDefinition %s, which %s places here, is not established yet; it is applied as soon as it is", none.error, by.manifest.ID.Name, by.placement)}
	}
	return err
}

// A pendingDefinition says that a kind waits for its definition, which is placed on the cluster
// too, to be established.
type pendingDefinition struct{ error }

// Unwrap returns the error of the API server.
func (c *pendingDefinition) Unwrap() error { return c.error }

// definition returns what wants the definition of a kind here; nil if nothing does.
func (s *session) definition(gvk schema.GroupVersionKind) *wanted {
	for id, w := range s.wanted.all() {
		if id.GroupKind() == definitions && defines(w.manifest.Object.Object, gvk) {
			return &w
		}
	}
	return nil
}

// defines reports whether a definition is of a kind.
func defines(crd *unstructured.Unstructured, gvk schema.GroupVersionKind) bool {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	if group != gvk.Group || kind != gvk.Kind {
		return false
	}
	field, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions") // with schemas, which are large
	versions, _ := field.([]any)
	return slices.ContainsFunc(versions, func(v any) bool {
		version, _ := v.(map[string]any)
		return version["name"] == gvk.Version && version["served"] == true
	})
}

func (k *kinds) note(gv schema.GroupVersion, list *metav1.APIResourceList, wanted map[schema.GroupVersionKind]bool) {
	for _, r := range list.APIResources {
		gvk := gv.WithKind(r.Kind)
		if _, known := k.of(gvk); !known && wanted[gvk] && !strings.Contains(r.Name, "/") {
			k.known = append(k.known, unique.Make(knownKind{gvk, connection.Resource{GroupVersionResource: gv.WithResource(r.Name), Namespaced: r.Namespaced}}))
		}
	}
}
