package member

import (
	"context"
	"encoding/json"
	"fmt"
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
	// err is why this is not known; nil if it is.
	err   error
	until time.Time // when the server is asked again
}

// serviceLifetime is how long a service is cached.
const serviceLifetime = 10 * time.Second

// serves returns how the cluster serves the kind of an object that is to be removed.
// false means that the kind is gone, and all its objects with it. Discovery may have
// omitted the kind for a while only, because it was stale or an aggregated API was down.
// Before a kind counts as gone, discovery is repeated and the CustomResourceDefinitions
// are read.
func (s *session) serves(ctx context.Context, gvk schema.GroupVersionKind) (connection.Resource, bool, error) {
	if res, ok := s.kinds.of(gvk); ok {
		return res, true, nil
	}
	known, ok := s.services[gvk]
	if !ok || !time.Now().Before(known.until) {
		if s.services == nil {
			s.services = map[schema.GroupVersionKind]service{}
		}
		known.resource, known.served, known.err = s.findService(ctx, gvk)
		known.until = time.Now().Add(serviceLifetime)
		s.services[gvk] = known
	}
	return known.resource, known.served, known.err
}

func (s *session) findService(ctx context.Context, gvk schema.GroupVersionKind) (connection.Resource, bool, error) {
	asking, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	versions, err := s.versions(asking, gvk)
	if s.conn.RecordResult(err) != nil {
		return connection.Resource{}, false, err
	}
	found := newKinds(s.kinds.client)
	for _, version := range versions {
		other := gvk.GroupKind().WithVersion(version)
		err := found.resolve(asking, map[schema.GroupVersionKind]bool{other: true})
		if err == nil {
			err = found.failed[other.GroupVersion()]
		}
		if s.conn.RecordResult(err) != nil {
			return connection.Resource{}, false, err
		}
		if res, ok := found.of(other); ok {
			return res, true, nil
		}
	}
	return connection.Resource{}, false, s.undefined(ctx, gvk.GroupKind())
}

// versions returns the version of gvk, whether it is served or not, and the other versions
// of its group that the cluster serves.
func (s *session) versions(ctx context.Context, gvk schema.GroupVersionKind) ([]string, error) {
	all := []string{gvk.Version}
	if gvk.Group == "" {
		return all, nil
	}
	raw, err := connection.Answer(s.conn.REST().Get().AbsPath("apis", gvk.Group).Do(ctx))
	if connection.NotFound(err) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	var group metav1.APIGroup
	if err := json.Unmarshal(raw, &group); err != nil {
		return nil, connection.ErrNotObject
	}
	for _, v := range group.Versions {
		if v.Version != gvk.Version {
			all = append(all, v.Version)
		}
	}
	return all, nil
}

var crds = connection.Resource{GroupVersionResource: definitions.WithVersion("v1").GroupVersion().WithResource("customresourcedefinitions"), Namespaced: false}

// undefined returns an error if the cluster has a CustomResourceDefinition of the kind, or
// if the definitions cannot be read.
func (s *session) undefined(ctx context.Context, kind schema.GroupKind) error {
	if !strings.Contains(kind.Group, ".") {
		return nil // only Kubernetes itself has such groups
	}
	opts := metav1.ListOptions{Limit: 500}
	for {
		page, err := s.conn.Page(ctx, crds.GroupVersionResource, "", &opts)
		if s.conn.RecordResult(err) != nil {
			return fmt.Errorf("whether the kind %s is gone for good cannot be told: %w", kind, err)
		}
		for i := range page.Items {
			name := page.Items[i].Name
			if _, group, _ := strings.Cut(name, "."); group != kind.Group {
				continue
			}
			crd, err := s.conn.Read(ctx, crds, api.ID{Group: definitions.Group, Kind: definitions.Kind, Name: name})
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
		if opts.Continue = page.Continue; opts.Continue == "" {
			return nil
		}
	}
}
