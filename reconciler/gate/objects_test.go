package gate

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// manifest decodes an object.
func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.Object = runtime.DeepCopyJSON(integers(o.Object).(map[string]any))
	return o
}

// integers makes whole numbers what they are in decoded objects.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case map[string]any:
		for name := range v {
			v[name] = integers(v[name])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	}
	return v
}

const inGit = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: web, labels: {tier: gold}}, spec: {replicas: 3}}`

// A gate over objects is good if the condition is true of what Git says of each object together with what its cluster reports, and bad if
// it is not true of one. Everything else cannot be evaluated, and what somebody has set on the cluster makes nothing good.
func TestObjectsAreJudged(t *testing.T) {
	const ready = "object.status.readyReplicas == object.spec.replicas"
	live := func(metadata, spec, status string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: web, generation: 2" + metadata + "}, spec: " + spec + ", status: {observedGeneration: 2, " + status + "}}"
	}
	good := live("", "{replicas: 3}", "readyReplicas: 3")
	for name, test := range map[string]struct {
		condition, live string
		want            placement.GateVerdict
		text            string
	}{
		"good":                       {ready, good, placement.GateGood, "objects: 2, clusters: 2; all are: " + ready},
		"bad":                        {ready, live("", "{replicas: 3}", "readyReplicas: 2"), placement.GateBad, "cluster b: Deployment.apps/web/web is not: " + ready},
		"scaled down on the cluster": {ready, live("", "{replicas: 0}", "readyReplicas: 0"), placement.GateBad, "is not: "},
		"a label of the cluster":     {"object.metadata.labels.checked == 'yes'", live(", labels: {checked: 'yes'}", "{}", "readyReplicas: 3"), placement.GateUnknown, "no such key: checked"},
		"an annotation there":        {"has(object.metadata.annotations)", live(", annotations: {checked: 'yes'}", "{}", "readyReplicas: 3"), placement.GateBad, "is not: "},
		"a label of Git":             {"object.metadata.labels.tier == 'gold'", live(", labels: {tier: tin}", "{}", "readyReplicas: 3"), placement.GateGood, "all are"},
		"its generation":             {"object.metadata.generation == 2", good, placement.GateGood, "all are"},
		"the status of an older one": {ready, live("", "{}", "readyReplicas: 3, observedGeneration: 1"), placement.GateUnknown, "its status is of generation 1, and the object of 2"},
		"a missing field":            {ready, live("", "{}", "replicas: 3"), placement.GateUnknown, "cluster b: Deployment.apps/web/web: the condition cannot be evaluated: no such key: readyReplicas"},
		"no bool":                    {"object.status.readyReplicas", good, placement.GateUnknown, "must give a bool"},
		"absent":                     {ready, "", placement.GateUnknown, "it is not there, or not gitfleet's"},
		"being deleted":              {ready, live(", deletionTimestamp: '2026-01-01T00:00:00Z'", "{}", "readyReplicas: 3"), placement.GateUnknown, "it is being deleted"},
	} {
		git := &api.Object{ID: api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}, Content: manifest(t, inGit)}
		read := func(_ context.Context, target placement.GateTarget) ([]*unstructured.Unstructured, error) {
			switch {
			case target.Cluster == "a":
				return []*unstructured.Unstructured{manifest(t, live(", labels: {checked: 'yes'}", "{replicas: 3}", "readyReplicas: 3"))}, nil
			case test.live == "":
				return []*unstructured.Unstructured{nil}, nil
			}
			return []*unstructured.Unstructured{manifest(t, test.live)}, nil
		}
		got := looks(t, read, test.condition, placement.GateTarget{Cluster: "b", Objects: []*api.Object{git}}, placement.GateTarget{Cluster: "a", Objects: []*api.Object{git}})
		if got.Verdict != test.want || !strings.Contains(got.Text, test.text) {
			t.Errorf("%s: %s: %q, want %s: %q", name, got.Verdict, got.Text, test.want, test.text)
		}
		if git.Content.Object["status"] != nil || git.Content.GetGeneration() != 0 {
			t.Errorf("%s: the manifest was changed", name)
		}
	}
}

// looks asks once about objects.
func looks(t *testing.T, read func(context.Context, placement.GateTarget) ([]*unstructured.Unstructured, error), condition string, targets ...placement.GateTarget) placement.GateAnswer {
	t.Helper()
	a := New(Config{Read: read, Log: slog.New(slog.DiscardHandler)})
	spec := &api.RolloutGateSpec{Objects: &api.ObjectsGate{APIVersion: "apps/v1", Kind: "Deployment", Condition: condition}}
	return a.ask(t.Context(), placement.GateQuestion{Spec: spec, Targets: targets})
}

// A stage without clusters, one without such objects, with too many of them, with a cluster that does not answer, or that is known to be
// unlike Git, lets nothing pass. A bad object counts although another cluster cannot be asked.
func TestWhatCannotBeLookedAt(t *testing.T) {
	git := &api.Object{ID: api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}, Content: manifest(t, inGit)}
	one := []*api.Object{git}
	read := func(_ context.Context, target placement.GateTarget) ([]*unstructured.Unstructured, error) {
		if target.Cluster == "down" {
			return nil, errors.New("connection refused")
		}
		live := manifest(t, inGit)
		live.Object["status"] = map[string]any{"ready": target.Cluster != "bad"}
		return []*unstructured.Unstructured{live}, nil
	}
	for name, test := range map[string]struct {
		targets []placement.GateTarget
		want    placement.GateVerdict
		text    string
	}{
		"no clusters": {nil, placement.GateUnknown, "the stage has no cluster with the placement"},
		"no objects":  {[]placement.GateTarget{{Cluster: "a"}}, placement.GateUnknown, "cluster a: the placement has no such object there (apps/v1, each Deployment)"},
		"too many":    {[]placement.GateTarget{{Cluster: "a", Objects: make([]*api.Object, maxObjects+1)}}, placement.GateUnknown, "the placement has 51 such objects there, more than 50"},
		"down":        {[]placement.GateTarget{{Cluster: "a", Objects: one}, {Cluster: "down", Objects: one}}, placement.GateUnknown, "cluster down: connection refused"},
		"unlike Git":  {[]placement.GateTarget{{Cluster: "a", Objects: one, Unknown: "it is suspended"}, {Cluster: "down", Objects: one}}, placement.GateUnknown, "cluster a and 1 more: it is suspended"},
		"bad":         {[]placement.GateTarget{{Cluster: "down", Objects: one}, {Cluster: "bad", Objects: one}}, placement.GateBad, "cluster bad: Deployment.apps/web/web is not: object.status.ready"},
	} {
		if got := looks(t, read, "object.status.ready", test.targets...); got.Verdict != test.want || !strings.Contains(got.Text, test.text) {
			t.Errorf("%s: %s: %q, want %s: %q", name, got.Verdict, got.Text, test.want, test.text)
		}
	}
}
