package hooks

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

var shop = api.PlacementKey{Name: "shop"}

// chartOf returns the work of a chart: a Deployment, a Namespace, and Jobs with the given hooks and weights, by name.
func chartOf(version string, jobs map[string]string) *work.Work {
	w := &work.Work{Placement: shop}
	add := func(group, kind, name, hook string) {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": name}}}
		if hook, weight, _ := strings.Cut(hook, "@"); hook != "" {
			o.SetAnnotations(map[string]string{"helm.sh/hook": hook, "helm.sh/hook-weight": weight})
		}
		id := api.ID{Group: group, Kind: kind, Name: name}
		w.Manifests = append(w.Manifests, &work.Manifest{Object: &api.Object{ID: id, Content: o, Hash: version}, Envelope: &api.EnvelopeIdentifier{Name: "web", Type: api.ClusterHelmChartType}})
	}
	add("", "Namespace", "shop", "")
	add("apps", "Deployment", "web", "")
	for name, hook := range jobs {
		add("batch", "Job", name, hook)
	}
	return w
}

// Hooks are applied before or after the other objects of their chart, at an installation or an upgrade, and waited for.
func TestOrder(t *testing.T) {
	const ended, failed = "v2 ended", "v2 failed"
	for name, test := range map[string]struct {
		hooks string // of the Job
		// deployment and job are the hashes in the inventory, and how the Job has ended.
		deployment, job string
		want            string // of the Deployment and the Job
	}{
		"an installation":                    {"pre-install", "", "", "waits, ready"},
		"it runs":                            {"pre-install", "", "v2", "waits, ready"},
		"it has run":                         {"pre-install", "", ended, "ready, ready"},
		"it has failed":                      {"pre-install", "", failed, "waits, ready"},
		"an upgrade after it":                {"pre-install", "v1", "v1 ended", "ready, not due"},
		"an upgrade without it":              {"pre-install", "v1", "", "ready, not due"},
		"no upgrade yet":                     {"pre-upgrade", "", "", "ready, not due"},
		"after the installation":             {"pre-upgrade", "v2", "", "ready, not due"},
		"an upgrade":                         {"pre-upgrade", "v1", "", "waits, ready"},
		"an upgrade that runs":               {"pre-upgrade", "v1", "v2", "waits, ready"},
		"an upgrade that has run":            {"pre-upgrade", "v1", ended, "ready, ready"},
		"both, at first":                     {"pre-install,pre-upgrade", "", "", "waits, ready"},
		"both, later":                        {"pre-install, pre-upgrade", "v1", "", "waits, ready"},
		"both, only the hook has changed":    {"pre-install,pre-upgrade", "v2", "", "ready, ready"},
		"after, at first":                    {"post-install", "", "", "ready, waits"},
		"after, then":                        {"post-install", "v2", "", "ready, ready"},
		"after, once":                        {"post-install", "v1", "v1 ended", "ready, not due"},
		"after each":                         {"post-upgrade", "v1", "", "ready, waits"},
		"after the first and before others":  {"post-install,pre-upgrade", "", "", "ready, waits"},
		"after the first and before others+": {"post-install,pre-upgrade", "v1", "", "waits, ready"},
		"after the first and before others-": {"post-install,pre-upgrade", "v2", "", "ready, ready"},
	} {
		t.Run(name, func(t *testing.T) {
			w := chartOf("v2", map[string]string{"hook": test.hooks})
			listed := map[string]string{"Namespace": test.deployment, "Deployment": test.deployment, "Job": test.job}
			items := func(id api.ID) *inventory.Item {
				hash, end, _ := strings.Cut(listed[id.Kind], " ")
				if hash == "" {
					return nil
				}
				return &inventory.Item{Hash: hash, End: inventory.End(end)}
			}
			got := map[string]string{}
			for _, m := range w.Manifests {
				state, why := Of([]*work.Work{w}).For(shop, m, items)
				if got[m.ID.Kind] = []string{"ready", "waits", "not due"}[state]; (state == Waits) != (why != "") {
					t.Errorf("%s: %s because of %q", m.ID, got[m.ID.Kind], why)
				}
			}
			if text := got["Deployment"] + ", " + got["Job"]; text != test.want || got["Namespace"] != "ready" {
				t.Errorf("got %s and %s, want %s", text, got["Namespace"], test.want)
			}
		})
	}
}

// A hook for pre-upgrade runs before what is added, too, and not again in an installation of which a part is still missing.
func TestAdditionIsAnUpgrade(t *testing.T) {
	for name, test := range map[string]struct {
		since string // the commit of the Deployment that is there
		want  string // of the object that is not, and of the Job
	}{
		"added by a later commit":     {"c1", "waits, ready"},
		"an installation that hangs":  {"c2", "ready, not due"},
		"nothing of the chart before": {"", "ready, not due"},
	} {
		t.Run(name, func(t *testing.T) {
			w := chartOf("v1", map[string]string{"hook": "pre-upgrade"})
			w.Revision.Commit = "c2"
			added := *w.Manifests[1].Object
			added.ID.Name = "added"
			w.Manifests = append(w.Manifests, &work.Manifest{Object: &added, Envelope: w.Manifests[1].Envelope})
			items := func(id api.ID) *inventory.Item {
				if id.Name != "web" || test.since == "" {
					return nil
				}
				return &inventory.Item{Hash: "v1", Commit: test.since}
			}
			got := map[string]string{}
			for _, m := range w.Manifests {
				state, _ := Of([]*work.Work{w}).For(shop, m, items)
				got[m.ID.Name] = []string{"ready", "waits", "not due"}[state]
			}
			if text := got["added"] + ", " + got["hook"]; text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

// Hooks with a smaller weight come first, before the other objects and after them.
func TestWeights(t *testing.T) {
	w := chartOf("v1", map[string]string{"b": "pre-install@5", "a": "pre-install@-3", "c": "post-install", "d": "post-install@1"})
	items := map[string]*inventory.Item{}
	var order []string
	for range 5 {
		for _, m := range w.Manifests {
			state, _ := Of([]*work.Work{w}).For(shop, m, func(id api.ID) *inventory.Item { return items[id.Name] })
			if state == Ready && items[m.ID.Name] == nil {
				order = append(order, m.ID.Name)
			}
		}
		for _, name := range order {
			items[name] = &inventory.Item{Hash: "v1", End: inventory.Ended}
		}
	}
	if got := fmt.Sprint(order); got != "[shop a b web c d]" {
		// the Namespace is there at once, and the Deployment only after both hooks
		t.Errorf("the order is %s", got)
	}
}

// What is no chart, or a chart without hooks, waits for nothing.
func TestNoHooks(t *testing.T) {
	w := chartOf("v1", nil)
	if Of([]*work.Work{w}) != nil || Of(nil).Others(shop, w.Manifests[0].ID) != nil {
		t.Error("a chart without hooks has an order")
	}
	w = chartOf("v1", map[string]string{"hook": "pre-install"})
	for _, m := range w.Manifests {
		m.Envelope = nil
	}
	if Of([]*work.Work{w}) != nil {
		t.Error("annotations of Helm have a meaning outside of charts")
	}
}

// A chart of a kustomization has hooks as well, in an overlay and without one, and what is not of the chart does not wait for them.
func TestChartsOfKustomizations(t *testing.T) {
	for name, envelope := range map[string]*api.EnvelopeIdentifier{"plain": nil, "in an overlay": {Name: "web", Type: api.ClusterOverlayType}} {
		w := chartOf("v1", map[string]string{"job": "pre-install"})
		for _, m := range w.Manifests {
			m.Envelope = envelope
			m.Object.Release = "web/kustomization.yaml: helmCharts[0]"
		}
		other := &work.Manifest{Object: &api.Object{ID: api.ID{Group: "apps", Kind: "Deployment", Name: "other"}, Content: w.Manifests[1].Content, Hash: "v1"}, Envelope: envelope}
		w.Manifests = append(w.Manifests, other)
		order := Of([]*work.Work{w})
		none := func(api.ID) *inventory.Item { return nil }
		if state, why := order.For(shop, w.Manifests[1], none); state != Waits {
			t.Errorf("%s: the Deployment of the chart: %v %s", name, state, why)
		}
		if state, why := order.For(shop, other, none); state != Ready {
			t.Errorf("%s: the other Deployment: %v %s", name, state, why)
		}
		if got := order.Others(shop, other.ID); got != nil {
			t.Errorf("%s: the other Deployment is of a chart with %v", name, got)
		}
	}
}
