package member_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// A mutator is a transport between an agent and its cluster that changes data.key of one
// applied ConfigMap, as an admission webhook would.
type mutator struct {
	next http.RoundTripper

	mu sync.Mutex
	// value returns the new value of data.key; nil does not change it.
	value func() string
	// noDryRun makes it refuse dry runs, as the API server does for a webhook with side
	// effects.
	noDryRun bool
	// failing is the number of dry runs that get no response.
	failing int
	writes  []string
}

// RoundTrip implements http.RoundTripper.
func (m *mutator) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/configmaps/mutated") {
		return m.next.RoundTrip(r)
	}
	dry := r.URL.Query().Has("dryRun")
	if !dry {
		m.writes = append(m.writes, r.URL.Query().Get("fieldManager"))
	}
	if dry && m.failing > 0 {
		m.failing--
		return nil, errors.New("connection reset by peer")
	}
	if dry && m.noDryRun && m.value != nil {
		status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: "admission webhook does not support dry run"}
		raw, err := json.Marshal(status)
		return &http.Response{StatusCode: http.StatusBadRequest, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw))}, err
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if m.value != nil {
		raw = bytes.ReplaceAll(raw, []byte(`"key":"sent"`), fmt.Appendf(nil, `"key":%q`, m.value()))
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return m.next.RoundTrip(r)
}

func (m *mutator) mutate(value func() string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.value = value
}

// applies returns the number of writes by gitfleet since the last call.
func (m *mutator) applies() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, manager := range m.writes {
		if manager == api.FieldManager {
			n++
		}
	}
	m.writes = nil
	return n
}

// A watched agent is one whose last report about crp/web is kept.
type watched struct {
	t      *testing.T
	config *rest.Config
	*member.Agent
	// ignore is the value of gitfleet.dev/ignore-fields on the ConfigMap.
	ignore string
	// content is the object of the work; nil is a ConfigMap. hash identifies it.
	content *unstructured.Unstructured
	hash    string
	// mode is the drift mode of the fleet.
	mode api.DriftMode
	// additions is what is done about what others add.
	additions api.AdditionsMode
	// checkFirst requests a check before the agent runs.
	checkFirst bool
	cancel     context.CancelFunc
	done       chan struct{}

	// record is what an earlier process has recorded.
	record protocol.MemberRecord

	mu       sync.Mutex
	seen     protocol.WorkSeen
	restored []protocol.Restore
}

// newMutated returns an agent that was not started, for a simulated cluster behind a mutator.
// direct accesses the cluster itself.
func newMutated(t *testing.T) (hook *mutator, direct *rest.Config, a *watched) {
	cluster := simulated.New(simulated.Options{}).Cluster("east")
	hook, direct = &mutator{next: cluster.RoundTripper()}, cluster.Config()
	return hook, direct, &watched{t: t, config: &rest.Config{Host: direct.Host, Transport: hook, QPS: -1}}
}

// startMutated is newMutated with a running agent that has applied its work.
func startMutated(t *testing.T) (hook *mutator, direct *rest.Config, a *watched) {
	hook, direct, a = newMutated(t)
	a.start()
	return hook, direct, a
}

func (a *watched) start() { a.startWith(a.works()) }

// restores returns the restores that were reported.
func (a *watched) restores() []protocol.Restore {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.restored)
}

func (a *watched) startWith(works []*work.Work) {
	a.Agent = member.New(member.Config{
		Name: "east", Fleet: "prod", Sweep: 6 * time.Hour, DriftMode: a.mode, Additions: a.additions, Encoder: apply.NewEncoder("prod", "https://git.example.com/fleet"),
		Connect: func(context.Context) (*rest.Config, error) { return a.config, nil },
		Log:     slog.New(slog.NewTextHandler(a.t.Output(), nil)),
		Report: func(o protocol.Observation) {
			a.mu.Lock()
			defer a.mu.Unlock()
			switch o := o.(type) {
			case protocol.WorkSeen:
				a.seen = o
			case protocol.ClusterSeen:
				if !o.Restored.At.IsZero() {
					a.restored = append(a.restored, o.Restored)
				}
			}
		},
	})
	a.SetRecord(a.record)
	a.Set(works)
	if a.checkFirst {
		a.Check()
	}
	ctx, cancel := context.WithCancel(a.t.Context())
	a.cancel, a.done = cancel, make(chan struct{})
	go func(agent *member.Agent, done chan struct{}) {
		defer close(done)
		agent.Run(ctx)
	}(a.Agent, a.done)
	synctest.Wait()
}

func (a *watched) stop() { a.cancel(); <-a.done }

// drift returns the recorded drift of the only object.
func (a *watched) drift() protocol.Drift {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen.Unusual().Drifts) == 0 {
		return protocol.Drift{}
	}
	return a.seen.Unusual().Drifts[0]
}

// drifts returns all records of drift.
func (a *watched) drifts() []protocol.Drift {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen.Unusual().Drifts)
}

// works returns the work of crp/web: one object.
func (a *watched) works() []*work.Work { return []*work.Work{a.work()} }

func (a *watched) work() *work.Work {
	o := a.content
	if o == nil {
		o = a.configMap()
	}
	hash := cmp.Or(a.hash, "h")
	return &work.Work{
		Placement: api.PlacementKey{Name: "web"}, Revision: placement.Revision{Commit: "c", Hash: hash},
		Strategy:  api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways, WhenToApply: api.ApplyAlways},
		Manifests: []*work.Manifest{{Object: &api.Object{ID: api.IDOf(o), Content: o, Hash: hash}}},
	}
}

func (a *watched) configMap() *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "mutated", "namespace": "default"},
		"data": map[string]any{"key": "sent"},
	}}
	if a.ignore != "" {
		o.SetAnnotations(map[string]string{api.IgnoreFieldsAnnotation: a.ignore})
	}
	return o
}

// edit merges a patch into the ConfigMap under another field manager.
func (a *watched) edit(patch string) {
	a.t.Helper()
	if _, err := mapsOf(a.t, a.config).Patch(a.t.Context(), "mutated", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		a.t.Fatal(err)
	}
}

// tamper applies the ConfigMap with another value under gitfleet's own name.
func (a *watched) tamper(config *rest.Config) {
	a.t.Helper()
	a.applyAs(config, "tampered")
}

// applyAs applies the ConfigMap with a value under gitfleet's own name.
func (a *watched) applyAs(config *rest.Config, value string) {
	a.t.Helper()
	maps := mapsOf(a.t, config)
	live := get(a.t, maps)
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": value},
		"metadata": map[string]any{"name": "mutated", "namespace": "default", "labels": live.GetLabels(), "annotations": live.GetAnnotations()},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := maps.Patch(a.t.Context(), "mutated", types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: api.FieldManager, Force: new(true)}); err != nil {
		a.t.Fatal(err)
	}
}

func mapsOf(t *testing.T, config *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	return inNamespace(t, config, "default")
}

func inNamespace(t *testing.T, config *rest.Config, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
}

func get(t *testing.T, maps dynamic.ResourceInterface) *unstructured.Unstructured {
	t.Helper()
	live, err := maps.Get(t.Context(), "mutated", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// expectSent checks that the ConfigMap has the value that was applied.
func expectSent(t *testing.T, config *rest.Config) {
	t.Helper()
	if got := value(get(t, mapsOf(t, config))); got != "sent" {
		t.Errorf("it is %q", got)
	}
}

func value(live *unstructured.Unstructured) string {
	v, _, _ := unstructured.NestedString(live.Object, "data", "key")
	return v
}
