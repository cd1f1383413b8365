package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// keyedDefinition defines a kind whose lists are keyed by numbers, booleans, strings and
// several fields at once, and have sets of each.
func keyedDefinition(group string) *work.Manifest {
	scalar := func(name string) map[string]any { return map[string]any{"type": name} }
	keyed := func(fields map[string]any, keys ...any) map[string]any {
		return map[string]any{
			"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
			"items": map[string]any{"type": "object", "required": keys, "properties": fields},
		}
	}
	set := func(of string) map[string]any {
		return map[string]any{"type": "array", "x-kubernetes-list-type": "set", "items": scalar(of)}
	}
	spec := map[string]any{
		"numbers": keyed(map[string]any{"n": scalar("integer"), "v": scalar("string")}, "n"),
		"texts":   keyed(map[string]any{"t": scalar("string"), "v": scalar("string")}, "t"),
		"flags":   keyed(map[string]any{"b": scalar("boolean"), "v": scalar("string")}, "b"),
		"several": keyed(map[string]any{"n": scalar("integer"), "t": scalar("string"), "b": scalar("boolean"), "v": scalar("string")}, "t", "n", "b"),
		"tags":    set("string"), "sizes": set("integer"), "ratios": set("number"),
	}
	return definitionOf(group, "Keyed", map[string]any{"type": "object", "properties": spec})
}

func keyed(group, namespace, name string) *work.Manifest {
	item := func(key string, value any) map[string]any { return map[string]any{key: value, "v": fmt.Sprint(value)} }
	each := func(key string, values ...any) (list []any) {
		for _, v := range values {
			list = append(list, item(key, v))
		}
		return list
	}
	var several []any
	for _, n := range []int64{100, 9, 80, 443} {
		for _, t := range []string{"b", "a", "a b"} {
			several = append(several, map[string]any{"n": n, "t": t, "b": n > 50, "v": "x"})
		}
	}
	return manifest("keyed", map[string]any{
		"apiVersion": group + "/v1", "kind": "Keyed", "metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{
			"numbers": each("n", int64(80), int64(443), int64(9), int64(100), int64(-1), int64(-20)),
			"texts":   each("t", "a", "a b", "a!b", "B", "a&b", `quo"te`, "ü"),
			"flags":   each("b", true, false),
			"several": several,
			"tags":    []any{"10", "9", "a b", "a", "<x>"}, "sizes": []any{int64(80), int64(443), int64(9)}, "ratios": []any{1.5, 10.25, int64(2)},
		},
	})
}

func serviceWith(namespace, name string, ports ...int64) *work.Manifest {
	var list []any
	for _, p := range ports {
		list = append(list, map[string]any{"name": fmt.Sprint("p", p), "port": p, "protocol": "TCP"})
		list = append(list, map[string]any{"name": fmt.Sprint("u", p), "port": p, "protocol": "UDP"})
	}
	return manifest(fmt.Sprint(ports), map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{"selector": map[string]any{"app": "web"}, "ports": list},
	})
}

func withPorts(m *work.Manifest, ports ...int64) *work.Manifest {
	containers, _, _ := unstructured.NestedFieldNoCopy(m.Object.Content.Object, "spec", "template", "spec", "containers")
	var list []any
	for _, p := range ports {
		list = append(list, map[string]any{"containerPort": p, "protocol": "TCP"}, map[string]any{"containerPort": p, "protocol": "UDP"})
	}
	containers.([]any)[0].(map[string]any)["ports"] = list
	return m
}

// labelled returns works in which every object has a label with that value, as when the label
// changes in Git.
func labelled(value string, ms ...*work.Manifest) *work.Work {
	for _, m := range ms {
		o := m.Object.Content
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["round"] = value
		o.SetLabels(labels)
		m.Object.Hash = "hash of " + m.ID.String() + value
	}
	return workOf("web", value, ms...)
}

// Whatever the keys of its lists are, an unchanged object has not drifted: not after several
// changes in Git, and not after a restart.
func TestListKeysCauseNoDrift(t *testing.T) {
	t.Parallel()
	metrics := member.NewMetrics()
	a := newAgent(t, func(cfg *member.Config) { cfg.Metrics = metrics })
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	group := ns + ".example.com"
	rounds := []string{"1", "2", "3", "4", "5"}
	objects := func() []*work.Manifest {
		list := []*work.Manifest{
			keyedDefinition(group), serviceWith(ns, "small", 80, 443), serviceWith(ns, "mixed", 9115, 19115, 9, 100),
			withPorts(deployment(ns, "web", 1, nil), 9115, 80, 443, 19115), keyed(group, ns, "web"),
		}
		for _, n := range rounds {
			list = append(list, serviceWith(ns, "fence-"+n, 1), deployment(ns, "fence-"+n, 1, nil), keyed(group, ns, "fence-"+n))
		}
		return list
	}
	dynamics, err := dynamic.NewForConfig(a.config)
	noError(t, err)
	undone := func() float64 { return metrics.Drifts.Value("member-1") }
	// fence waits until every event of these kinds so far has been handled: an edit that comes
	// after them is reverted.
	fence := func(n string) {
		t.Helper()
		for _, r := range []schema.GroupVersionResource{
			{Version: "v1", Resource: "services"}, {Group: "apps", Version: "v1", Resource: "deployments"}, {Group: group, Version: "v1", Resource: "keyeds"},
		} {
			o := dynamics.Resource(r).Namespace(ns)
			_, err := o.Patch(ctx, "fence-"+n, types.MergePatchType, []byte(`{"metadata":{"labels":{"round":"tampered"}}}`), metav1.PatchOptions{FieldManager: "fence"})
			noError(t, err)
			a.eventually("restored", func() (bool, error) {
				live, err := o.Get(ctx, "fence-"+n, metav1.GetOptions{})
				return err == nil && live.GetLabels()["round"] != "tampered", err
			})
		}
	}
	for i, n := range rounds {
		a.Set([]*work.Work{labelled(n, objects()...)})
		a.until(key, "applied", func(w protocol.WorkSeen) bool { return w.Revision.Hash == n && w.Done && w.Applied() })
		fence(n)
		if got, want := undone(), float64(3*(i+1)); got != want {
			t.Errorf("round %s: it found %v changes by others, and there were %v", n, got, want)
		}
	}
	seen := a.until(key, "reported", func(w protocol.WorkSeen) bool { return len(w.Unusual().Drifts) >= 3*len(rounds) })
	for _, d := range seen.Unusual().Drifts {
		if !strings.HasPrefix(d.ID.Name, "fence-") {
			t.Errorf("drift that nobody caused: %s", driftText(d))
		}
	}

	a.stop()
	a.start()
	a.Set([]*work.Work{labelled("5", objects()...)})
	a.until(key, "applied after a restart", func(w protocol.WorkSeen) bool { return w.Done && w.Applied() })
	if got := a.writes(); len(got) > 0 {
		t.Errorf("writes after a restart: %v", got)
	}
}
