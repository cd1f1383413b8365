package member

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// The error about an unknown kind says what would help: another version, its definition, or
// waiting if the definition is placed here too.
func TestUnknownKindsAreExplained(t *testing.T) {
	definition := func(kind, version string, served bool) *work.Manifest {
		m := oneManifest()
		m.Object.ID = api.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gadgets.example.com"}
		m.Object.Content.Object = map[string]any{"spec": map[string]any{
			"group": "example.com", "names": map[string]any{"kind": kind},
			"versions": []any{map[string]any{"name": version, "served": served}},
		}}
		return m
	}
	gadget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	const missing = `no matches for kind "Gadget" in version "example.com/v1": the cluster has no CustomResourceDefinition of kind Gadget in group example.com with version v1: place it`
	tests := map[string]struct {
		gvk   schema.GroupVersionKind
		holds *work.Manifest
		fails bool // the definition cannot be applied
		want  string
	}{
		"no definition":        {gadget, nil, false, missing},
		"of another kind":      {gadget, definition("Gizmo", "v1", true), false, missing},
		"of another version":   {gadget, definition("Gadget", "v2", true), false, missing},
		"of one not served":    {gadget, definition("Gadget", "v1", false), false, missing},
		"one that is coming":   {gadget, definition("Gadget", "v1", true), false, `no matches for kind "Gadget" in version "example.com/v1": its CustomResourceDefinition gadgets.example.com, which crp/web places here, is not established yet`},
		"one that fails":       {gadget, definition("Gadget", "v1", true), true, "its CustomResourceDefinition gadgets.example.com, which crp/web places here, is not applied: see why there"},
		"one of Kubernetes":    {schema.GroupVersionKind{Group: "batch", Version: "v1beta1", Kind: "CronJob"}, nil, false, `no matches for kind "CronJob" in version "batch/v1beta1": the Kubernetes of the cluster does not have it: use`},
		"one of Kubernetes io": {schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v9", Kind: "Ingress"}, nil, false, "the Kubernetes of the cluster does not have it: use"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.kinds = discovery.New(nil)
			w := &work.Work{Placement: api.PlacementKey{Name: "web"}}
			if test.holds != nil {
				w.Manifests = []*work.Manifest{test.holds}
			}
			s.setWorks([]*work.Work{w})
			if test.fails {
				s.record.progress.Fail(test.holds.ID, progress.Failure{Cond: diff.Condition{Status: metav1.ConditionFalse}})
			}
			if got := s.applier.unknownKind(test.gvk).Error(); !strings.Contains(got, test.want) {
				t.Errorf("it says %q, want %q", got, test.want)
			}
			m := oneManifest()
			m.Object.Content.SetGroupVersionKind(test.gvk)
			s.applier.task(m.ID, desired.Object{Placement: w.Placement, Manifest: m})
			if pending := s.failure(m.ID).Pending; pending != strings.Contains(test.want, "not established yet") {
				t.Errorf("pending: %t", pending)
			}
		})
	}
}

// A lateServer is an API server without a network. It accepts every apply, but serves the kind
// Gadget only from some time on, whatever its definition says.
type lateServer struct {
	serves  time.Time
	lookups atomic.Int32
	applied atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (l *lateServer) RoundTrip(r *http.Request) (*http.Response, error) {
	notThere := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}
	code, answer := http.StatusOK, any(nil)
	switch {
	case r.URL.Path == "/api/v1":
		answer = metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}}}
	case r.URL.Path == "/apis/example.com/v1":
		l.lookups.Add(1)
		code, answer = http.StatusNotFound, notThere
		if !time.Now().Before(l.serves) {
			code, answer = http.StatusOK, metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "gadgets", Kind: "Gadget", Namespaced: true}}}
		}
	case r.Method == http.MethodPatch:
		if strings.Contains(r.URL.Path, "/gadgets/") {
			l.applied.Add(1)
		}
		var applied unstructured.Unstructured
		if err := json.NewDecoder(r.Body).Decode(&applied.Object); err != nil {
			return nil, err
		}
		applied.SetUID("1")
		applied.SetResourceVersion("7")
		answer = applied.Object
	case strings.Contains(r.URL.Path, "/gadgets/"):
		code, answer = http.StatusNotFound, notThere
	case r.URL.Query().Has("watch"):
		<-r.Context().Done()
		return nil, r.Context().Err()
	default:
		answer = metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// Objects whose definition is placed with them are applied soon after it is established,
// however often the definition changed before and however late the server serves the kind. The
// number of discovery requests is limited.
func TestKindIsFoundSoonAfterItsDefinitionIsEstablished(t *testing.T) {
	crd := api.ID{Group: discovery.Definitions.Group, Kind: discovery.Definitions.Kind, Name: "gadgets.example.com"}
	tests := map[string]struct {
		established, serves time.Duration
		within              time.Duration // after the kind is served
		lookups             int32
	}{
		"at once":                  {0, 0, 0, 2},
		"established late":         {5 * time.Minute, 5 * time.Minute, 0, 20},
		"discovery lags behind":    {time.Minute, 80 * time.Second, discovery.EstablishedLookup, 30},
		"discovery lags very much": {0, 20 * time.Minute, discovery.LastLookup, 40},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				server := &lateServer{serves: start.Add(test.serves)}
				s := sessionOf(t, &rest.Config{Host: "https://late.example", Transport: server, QPS: -1})
				defer func() {
					for _, k := range s.watch.All() {
						k.Stop()
					}
					s.pods.Wait()
					s.watch.Wait()
				}()
				w := &work.Work{Placement: api.PlacementKey{Name: "web"}, Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways}}
				const gadgets = 20
				for i := range gadgets {
					w.Manifests = append(w.Manifests, gadget(fmt.Sprint("gadget-", i)))
				}
				s.setWorks([]*work.Work{w})
				s.sync(t.Context())

				definition := &watch.Kind{GVK: discovery.Definitions.WithVersion("v1")}
				seen := func(version uint64, state health.State) {
					s.watch.Changes.Put(definition, crd, &observed.Object{Version: version, Generation: 1, Health: health.Health{State: state}})
				}
				for version := range uint64(30) {
					seen(version+1, health.NotAvailableYet)
					s.processChanges(t.Context())
				}
				established := time.After(test.established)
				for server.applied.Load() < gadgets && time.Since(start) < time.Hour {
					select {
					case <-established:
						seen(100, health.Available)
						s.processChanges(t.Context())
					case <-s.retry.C:
						s.retryDue(t.Context())
					}
				}
				if late := time.Since(server.serves); late > test.within {
					t.Errorf("applied %s after the kind was served, want %s at most", late, test.within)
				}
				if n := server.lookups.Load(); n > test.lookups {
					t.Errorf("the server was asked for the kind %d times, want %d at most", n, test.lookups)
				}
			})
		})
	}
}

// A SecretStore comes before an ExternalSecret also if its kind becomes known later, and no other object waits for it.
func TestStoresComeFirstWhenKindsBecomeKnown(t *testing.T) {
	custom := func(group, kind, name string) *work.Manifest {
		return &work.Manifest{Object: &api.Object{ID: api.ID{Group: group, Kind: kind, Namespace: "web", Name: name}, Hash: "hash", Content: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "web"},
		}}}}
	}
	definition := custom(discovery.Definitions.Group, discovery.Definitions.Kind, "secretstores.external-secrets.io")
	definition.Object.Content.Object["spec"] = map[string]any{"group": "external-secrets.io", "names": map[string]any{"kind": "SecretStore"}, "versions": []any{map[string]any{"name": "v1", "served": true}}}
	store, secret, other := custom("external-secrets.io", "SecretStore", "vault"), custom("external-secrets.io", "ExternalSecret", "db"), custom("example.com", "Gadget", "other")
	for name, test := range map[string]struct {
		definition, storeKnown, applied bool
		waits                           bool
	}{
		"the definition is coming":      {definition: true, waits: true},
		"the store's kind is known":     {definition: true, storeKnown: true},
		"the definition is not placed":  {},
		"the secret was applied before": {definition: true, applied: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.kinds = discovery.New(nil)
			known := []*work.Manifest{secret, other}
			if test.storeKnown {
				known = append(known, store)
			}
			for _, m := range known {
				s.kinds.Add(m.Object.Content.GroupVersionKind(), connection.Resource{Namespaced: true})
			}
			w := work.Work{Placement: web, Manifests: []*work.Manifest{store, secret, other}}
			if test.definition {
				w.Manifests = append(w.Manifests, definition)
			}
			s.setWorks([]*work.Work{&w})
			if test.applied {
				s.inventories.owned.Inventory(web).Items.Put(inventory.Item{Group: secret.ID.Group, Version: "v1", Kind: secret.ID.Kind, Namespace: "web", Name: "db", Hash: "older"})
			}
			for _, m := range w.Manifests {
				s.applier.task(m.ID, desired.Object{Placement: web, Manifest: m})
			}
			bad := s.failure(secret.ID)
			if waits := bad.Pending && bad.Unknown == store.Object.Content.GroupVersionKind() && strings.Contains(bad.Cond.Message(), "it waits for SecretStore.external-secrets.io/web/vault"); waits != test.waits {
				t.Errorf("it waits: %t, with %+v", waits, bad)
			}
			if s.progress.HasFailed(other.ID) {
				t.Errorf("another object has failed: %+v", s.failure(other.ID))
			}
		})
	}
}

func gadget(name string) *work.Manifest {
	return &work.Manifest{Object: &api.Object{
		ID: api.ID{Group: "example.com", Kind: "Gadget", Namespace: "web", Name: name}, Hash: "hash",
		Content: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": name, "namespace": "web"},
		}},
	}}
}
