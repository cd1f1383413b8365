package diff

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The hash changes when somebody changes the applied fields, and only then. A member relies on
// it instead of polling.
func TestApplyHashTellsWhoMovedOurFields(t *testing.T) {
	tests := map[string]struct {
		do    func(*server)
		moved bool
	}{
		"we apply the same again": {func(s *server) { s.apply(api.FieldManager, web) }, false},
		"a foreign annotation": {func(s *server) {
			s.update("kubectl-annotate", "", func(o map[string]any) { set(s.t, o, "x", "metadata", "annotations", "note") })
		}, false},
		"a foreign environment variable": {func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) {
				c := container(o)
				c["env"] = append(c["env"].([]any), map[string]any{"name": "DEBUG", "value": "1"})
			})
		}, false},
		"a status": {func(s *server) {
			s.update("kube-controller-manager", "status", func(o map[string]any) { set(s.t, o, int64(3), "status", "readyReplicas") })
		}, false},
		"another manager applies the same value": {func(s *server) {
			s.apply("argo", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {tier: front}}}")
		}, false},

		"an edit of the image": {func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) { container(o)["image"] = "nginx:evil" })
		}, true},
		"a label removed": {func(s *server) {
			s.update("kubectl-label", "", func(o map[string]any) { unstructured.RemoveNestedField(o, "metadata", "labels", "tier") })
		}, true},
		"a container removed": {func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) {
				set(s.t, o, []any{map[string]any{"name": "other", "image": "x"}}, "spec", "template", "spec", "containers")
			})
		}, true},
		"kubectl scale":  {func(s *server) { s.scale("kubectl", 5) }, true},
		"an autoscaler":  {func(s *server) { s.scale("kube-controller-manager", 5) }, true},
		"a forced apply": {func(s *server) { s.apply("argo", replicas(7)) }, true},
		"an update under our own name": {func(s *server) {
			s.update(api.FieldManager, "", func(o map[string]any) { container(o)["image"] = "nginx:evil" })
		}, true},
		"managed fields stripped": {func(s *server) { s.live.SetManagedFields(nil) }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, web)
			before := s.hash()
			if len(before) != 64 {
				t.Fatalf("hash after our apply is %q", before)
			}
			test.do(s)
			if moved := s.hash() != before; moved != test.moved {
				t.Errorf("moved: %t, want %t; managers: %s", moved, test.moved, managers(s.live.GetManagedFields()))
			}
			s.apply(api.FieldManager, web)
			if s.hash() != before {
				t.Error("putting it back does not bring the hash back")
			}
		})
	}
}

func replicas(n rune) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: " + string('0'+n) + "}}"
}

func TestApplyHashOfWhatWeNeverApplied(t *testing.T) {
	s := newServer(t, web)
	if got := ApplyHash(s.live.GetManagedFields(), "someone"); got != "" {
		t.Errorf("hash of a stranger is %q", got)
	}
	if got := ApplyHash(nil, api.FieldManager); got != "" {
		t.Errorf("hash of nothing is %q", got)
	}
}

func TestWhoNamesTheOneThatDidIt(t *testing.T) {
	past := time.Now().Add(-time.Hour)
	tests := map[string]struct {
		do    func(*server)
		since time.Time
		want  []string
	}{
		"an edit": {func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) { container(o)["image"] = "nginx:evil" })
		}, past, []string{"kubectl-edit (Update)"}},
		"an edit beside a harmless writer": {func(s *server) {
			s.update("kubectl-annotate", "", func(o map[string]any) { set(s.t, o, "x", "metadata", "annotations", "note") })
			s.update("kubectl-edit", "", func(o map[string]any) { container(o)["env"].([]any)[0].(map[string]any)["value"] = "slow" })
		}, past, []string{"kubectl-edit (Update)"}},
		"kubectl scale":   {func(s *server) { s.scale("kubectl", 5) }, past, []string{"kubectl (Update through scale)"}},
		"another applier": {func(s *server) { s.apply("argo", replicas(7)) }, past, []string{"argo (Apply)"}},
		"an update under our own name": {func(s *server) {
			s.update(api.FieldManager, "", func(o map[string]any) { container(o)["image"] = "nginx:evil" })
		}, past, []string{"gitfleet (Update)"}},
		"an atomic list": {func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) {
				set(s.t, o, []any{map[string]any{"key": "gpu", "operator": "Exists"}}, "spec", "template", "spec", "tolerations")
			})
		}, past, []string{"kubectl-edit (Update)"}},
		"a field removed, by someone who wrote something else too": {func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) {
				unstructured.RemoveNestedField(o, "metadata", "labels", "tier")
				set(s.t, o, "x", "metadata", "labels", "mine")
			})
		}, past, []string{"kubectl-edit (Update)"}},
		"a field removed, and all writers are older": {func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) {
				unstructured.RemoveNestedField(o, "metadata", "labels", "tier")
				set(s.t, o, "x", "metadata", "labels", "mine")
			})
		}, time.Now().Add(time.Hour), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, web)
			test.do(s)
			details := Compare(s.dryRun(api.FieldManager, web), s.live, Options{})
			if len(details) == 0 {
				t.Fatal("nothing differs")
			}
			var got []string
			for _, a := range Who(s.live, api.FieldManager, test.since, details) {
				if a.Time.IsZero() {
					t.Errorf("%s has no time", a)
				}
				got = append(got, a.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("who = %q, want %q, for %v", got, test.want, details)
			}
		})
	}
}

func TestRivalsAreThoseWhoOwnWhatTheHubSets(t *testing.T) {
	tests := map[string]struct {
		desired string
		do      func(*server)
		want    []Rival
	}{
		"an autoscaler on a replica count of the hub": {web,
			func(s *server) { s.scale("kube-controller-manager", 5) },
			[]Rival{{Path: "/spec/replicas", Value: "5", Wanted: "3", Autoscaler: true,
				By: api.Actor{Manager: "kube-controller-manager", Operation: "Update", Subresource: "scale"}}}},
		"a person": {web,
			func(s *server) { s.scale("kubectl", 5) },
			[]Rival{{Path: "/spec/replicas", Value: "5", Wanted: "3",
				By: api.Actor{Manager: "kubectl", Operation: "Update", Subresource: "scale"}}}},
		"an autoscaler where the hub leaves the count open": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {tier: front}}}",
			func(s *server) { s.scale("kube-controller-manager", 5) }, nil},
		"Flagger": {web, func(s *server) {
			s.update("flagger", "", func(o map[string]any) {
				set(s.t, o, int64(0), "spec", "replicas")
				variable(o)["value"] = "slow"
			})
		}, []Rival{{Path: "/spec/replicas", Value: "0", Wanted: "3", Autoscaler: true, By: api.Actor{Manager: "flagger", Operation: "Update"}}}},
		"Flagger, of something else": {web, func(s *server) {
			s.update("flagger", "", func(o map[string]any) { variable(o)["value"] = "slow" })
		}, nil},
		"an ordinary edit": {web, func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) { set(s.t, o, int64(5), "spec", "replicas") })
		}, nil},
		"a status": {web, func(s *server) {
			s.update("kube-controller-manager", "status", func(o map[string]any) { set(s.t, o, int64(3), "status", "readyReplicas") })
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, test.desired)
			test.do(s)
			got := Rivals(object(t, test.desired), s.live)
			for i := range got {
				if got[i].By.Time.IsZero() {
					t.Error("no time")
				}
				got[i].By.Time = time.Time{}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("rivals = %+v, want %+v", got, test.want)
			}
		})
	}
}

// Only spec.replicas is what an autoscaler sets; replicas elsewhere need no read before an apply.
func TestAppliesReplicas(t *testing.T) {
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	tests := map[string]struct {
		fields    string
		operation metav1.ManagedFieldsOperationType
		want      bool
	}{
		"spec.replicas":             {`{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:paused":{},"f:replicas":{},"f:selector":{}}}`, apply, true},
		"by an update":              {`{"f:spec":{"f:replicas":{}}}`, update, false},
		"in a list of a RayCluster": {`{"f:spec":{"f:headGroupSpec":{},"f:workerGroupSpecs":{"k:{\"groupName\":\"a\"}":{".":{},"f:replicas":{}}}}}`, apply, false},
		"below another field":       {`{"f:spec":{"f:redis":{"f:replicas":{}},"f:sentinel":{}}}`, apply, false},
		"below and beside":          {`{"f:spec":{"f:redis":{"f:replicas":{}},"f:replicas":{}}}`, apply, true},
		"in the status":             {`{"f:spec":{"f:size":{}},"f:status":{"f:replicas":{}}}`, apply, false},
		"at the top":                {`{"f:replicas":{},"f:spec":{}}`, apply, false},
		"a label of the name":       {`{"f:metadata":{"f:labels":{"f:replicas":{}}}}`, apply, false},
		"a spec below a spec":       {`{"f:spec":{"f:template":{"f:spec":{"f:replicas":{}}}}}`, apply, false},
		"a value in a set":          {`{"f:spec":{"f:kinds":{"v:\"f:replicas\"":{}}}}`, apply, false},
		"no spec":                   {`{}`, apply, false},
		"not a field set":           {`{"f:spec":["f:replicas"]}`, apply, false},
		"truncated":                 {`{"f:spec":{"f:redis":{"f:replicas"`, apply, false},
	}
	for name, test := range tests {
		entries := []metav1.ManagedFieldsEntry{{Manager: api.FieldManager, Operation: test.operation, FieldsV1: metav1.NewFieldsV1(test.fields)}}
		if got := AppliesReplicas(entries, api.FieldManager); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
		if AppliesReplicas(entries, "somebody") {
			t.Errorf("%s: by another manager", name)
		}
	}
}
