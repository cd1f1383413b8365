package availability

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/health"
)

func object(kind string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "one", "namespace": "web", "generation": int64(2)},
	}}
	for name, value := range fields {
		o.Object[name] = value
	}
	return o
}

// manifest returns a manifest whose annotation for the expression has a value; nil for none.
func manifest(name string, expression any) *work.Manifest {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
	if expression != nil {
		u.Object["metadata"].(map[string]any)["annotations"] = map[string]any{api.AvailableAnnotation: expression}
	}
	return &work.Manifest{Object: &api.Object{ID: id(name), Content: u}}
}

func id(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "web", Name: name} }

// An object is available if its expression holds for it as it is on the cluster. What cannot be
// evaluated is not available, and the message says why, in short and without values of Secrets.
func TestHealth(t *testing.T) {
	const value = "c2VjcmV0LXBhc3N3b3Jk" // secret-password
	phase := func(phase string) *unstructured.Unstructured {
		return object("Widget", map[string]any{"status": map[string]any{"phase": phase}})
	}
	for name, test := range map[string]struct {
		live  *unstructured.Unstructured
		text  string
		state health.State
		says  string
	}{
		"it holds":               {phase("Ready"), "object.status.phase == 'Ready'", health.Available, ""},
		"it does not hold":       {phase("Pending"), "object.status.phase == 'Ready'", health.NotAvailableYet, "its expression does not hold"},
		"it is not evaluable":    {object("Widget", nil), "object.status.phase == 'Ready'", health.NotAvailableYet, "its expression cannot be evaluated: "},
		"it does not compile":    {phase("Ready"), "object.status.phase ==", health.NotAvailableYet, "its expression cannot be evaluated: "},
		"it gives no bool":       {phase("Ready"), "'Ready'", health.NotAvailableYet, "must give a bool"},
		"the status is of older": {object("Widget", map[string]any{"status": map[string]any{"observedGeneration": int64(1)}}), "true", health.NotAvailableYet, ""},
		"an error quotes much":   {phase(strings.Repeat("x", 1000)), "object[object.status.phase] == 1", health.NotAvailableYet, "…"},
		"an error quotes a Secret": {
			object("Secret", map[string]any{"data": map[string]any{"password": value}}), "object.data[object.data.password] == 1", health.NotAvailableYet, "its expression cannot be evaluated: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := New(&Cache{}).Health(test.live, test.text)
			if h.State != test.state || !strings.Contains(h.Message, test.says) {
				t.Errorf("%s: %s", h.State, h.Message)
			}
			if strings.Contains(h.Message, value) {
				t.Errorf("the message has a value of a Secret: %s", h.Message)
			}
			if len(h.Message) > maxMessage+len("…") {
				t.Errorf("the message has %d bytes: %s", len(h.Message), h.Message)
			}
		})
	}
}

// An expression is compiled once, and one that does not compile fails once; of very many, few are
// kept.
func TestCacheCompilesOnce(t *testing.T) {
	var x Cache
	first, err := x.compile("true")
	again, _ := x.compile("true")
	if err != nil || first == nil || first != again {
		t.Errorf("%p and %p: %v", first, again, err)
	}
	_, err = x.compile("1 +")
	if _, same := x.compile("1 +"); err == nil || err != same {
		t.Errorf("%v, then %v", err, same)
	}
	for i := range 2 * maxExpressions {
		if _, err := x.compile(fmt.Sprintf("object.a == %d +", i)); err == nil {
			t.Fatal("it compiles")
		}
		if len(x.all) > maxExpressions {
			t.Fatalf("%d expressions are kept, want at most %d", len(x.all), maxExpressions)
		}
	}
}

// The expressions are those of the newest manifests, and no others.
func TestExpressionsAreThoseOfTheManifests(t *testing.T) {
	const ready, done = "object.ready", "object.done"
	for name, test := range map[string]struct {
		before, now []*work.Manifest
		want        map[string]string
	}{
		"none yet":            {nil, nil, nil},
		"of each":             {nil, []*work.Manifest{manifest("one", ready), manifest("two", done)}, map[string]string{"one": ready, "two": done}},
		"one without":         {nil, []*work.Manifest{manifest("one", ready), manifest("two", nil)}, map[string]string{"one": ready}},
		"one is changed":      {[]*work.Manifest{manifest("one", ready)}, []*work.Manifest{manifest("one", done)}, map[string]string{"one": done}},
		"one is taken back":   {[]*work.Manifest{manifest("one", ready)}, []*work.Manifest{manifest("one", nil)}, nil},
		"an object has left":  {[]*work.Manifest{manifest("one", ready), manifest("two", ready)}, []*work.Manifest{manifest("two", ready)}, map[string]string{"two": ready}},
		"it is not a string":  {nil, []*work.Manifest{manifest("one", int64(3))}, nil},
		"an empty expression": {nil, []*work.Manifest{manifest("one", "")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(&Cache{})
			if test.before != nil {
				e.Replace(slices.Values(test.before))
			}
			e.Replace(slices.Values(test.now))
			for _, of := range []string{"one", "two"} {
				if got := e.Of(id(of)); got != test.want[of] {
					t.Errorf("of %s it is %q, want %q", of, got, test.want[of])
				}
			}
		})
	}
	var none *Expressions
	if none.Of(id("one")) != "" || New(&Cache{}).Of(id("one")) != "" {
		t.Error("a cluster without works has an expression")
	}
}

// Watches read expressions while they are replaced.
func TestExpressionsAreReadWhileReplaced(t *testing.T) {
	e := New(&Cache{})
	var both sync.WaitGroup
	both.Go(func() {
		for range 100 {
			e.Replace(slices.Values([]*work.Manifest{manifest("one", "true")}))
		}
	})
	both.Go(func() {
		for range 100 {
			if text := e.Of(id("one")); text != "" && e.Health(object("Widget", nil), text).State != health.Available {
				t.Error("not available")
			}
		}
	})
	both.Wait()
}
