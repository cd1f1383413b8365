package discovery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A service records how the cluster serves a kind that discovery did not list.
type service struct {
	resource connection.Resource
	served   bool
	// err is the reason why this is not known; nil if it is.
	err   error
	until time.Time // time of the next request
}

// A Finder determines how the cluster serves the kinds of objects to be removed.
type Finder struct {
	conn  *connection.Conn
	kinds *Kinds
	// services caches how kinds that discovery did not list are served.
	services map[schema.GroupVersionKind]service
}

// NewFinder returns a finder that looks up known kinds first.
func NewFinder(conn *connection.Conn, known *Kinds) *Finder {
	return &Finder{conn: conn, kinds: known}
}

// serviceLifetime is how long a service is cached.
const serviceLifetime = 10 * time.Second

// Serves returns how the cluster serves the kind of an object to be removed. False means that
// the kind and all of its objects are gone. Discovery may omit a kind only temporarily, because
// it is stale or an aggregated API is down. So before a kind counts as gone, discovery is
// repeated and the CustomResourceDefinitions are read.
func (f *Finder) Serves(ctx context.Context, gvk schema.GroupVersionKind) (connection.Resource, bool, error) {
	if res, ok := f.kinds.Of(gvk); ok {
		return res, true, nil
	}
	known, ok := f.services[gvk]
	if !ok || !time.Now().Before(known.until) {
		if f.services == nil {
			f.services = map[schema.GroupVersionKind]service{}
		}
		known.resource, known.served, known.err = f.findService(ctx, gvk)
		known.until = time.Now().Add(serviceLifetime)
		f.services[gvk] = known
	}
	return known.resource, known.served, known.err
}

func (f *Finder) findService(ctx context.Context, gvk schema.GroupVersionKind) (connection.Resource, bool, error) {
	asking, cancel := context.WithTimeout(ctx, f.conn.Timeout())
	defer cancel()
	versions, err := versionsOf(asking, f.conn.REST(), gvk.Group)
	if f.conn.RecordResult(err) != nil {
		return connection.Resource{}, false, err
	}
	found := New(f.kinds.client)
	for _, version := range append([]string{gvk.Version}, slices.DeleteFunc(versions, func(v string) bool { return v == gvk.Version })...) {
		other := gvk.GroupKind().WithVersion(version)
		err := found.ask(asking, map[schema.GroupVersion]bool{other.GroupVersion(): true}, map[schema.GroupVersionKind]bool{other: true})
		if err == nil {
			err = found.failed[other.GroupVersion()]
		}
		if f.conn.RecordResult(err) != nil {
			return connection.Resource{}, false, err
		}
		if res, ok := found.Of(other); ok {
			return res, true, nil
		}
	}
	return connection.Resource{}, false, f.undefined(ctx, gvk.GroupKind())
}

// CustomResourceDefinitions is the resource of the kind Definitions, which is the same on every
// cluster.
var CustomResourceDefinitions = connection.Resource{GroupVersionResource: Definitions.WithVersion("v1").GroupVersion().WithResource("customresourcedefinitions"), Namespaced: false}

// undefined returns an error if the cluster has a CustomResourceDefinition of the kind, or
// if the definitions cannot be read.
func (f *Finder) undefined(ctx context.Context, kind schema.GroupKind) error {
	if !strings.Contains(kind.Group, ".") { // such groups are built in
		_, err := connection.Answer(f.conn.REST().Get().AbsPath("api").Do(ctx)) // a proxy may answer that nothing is there
		if err = f.conn.RecordResult(err); err != nil {
			return fmt.Errorf("whether the kind %s is gone for good cannot be told: %w", kind, err)
		}
		return nil
	}
	at := connection.Listing{ListOptions: metav1.ListOptions{Limit: 500}}
	for {
		page, err := f.conn.Page(ctx, CustomResourceDefinitions.GroupVersionResource, "", &at.ListOptions)
		if f.conn.RecordResult(err) != nil {
			return fmt.Errorf("whether the kind %s is gone for good cannot be told: %w", kind, err)
		}
		for i := range page.Items {
			name := page.Items[i].Name
			if _, group, _ := strings.Cut(name, "."); group != kind.Group {
				continue
			}
			crd, err := f.conn.Read(ctx, CustomResourceDefinitions, api.ID{Group: Definitions.Group, Kind: Definitions.Kind, Name: name})
			if err != nil {
				return fmt.Errorf("whether the kind %s is gone for good cannot be told: %w", kind, err)
			}
			if crd == nil {
				continue
			}
			if defined, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind"); defined == kind.Kind {
				return fmt.Errorf("the cluster does not serve the kind %s, but has its CustomResourceDefinition %s: the object may still be there, and is removed once the kind is served again", kind, name)
			}
		}
		if more, err := at.Next(page, len(page.Items)); !more {
			return err
		}
	}
}

// Definitions is the kind that defines other kinds.
var Definitions = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
