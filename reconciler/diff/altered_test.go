package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Altered lists each value that an API server stores differently from what was applied. It
// lists neither what the server adds nor different spellings of a value.
func TestAlteredIsWhatTheServerStoresOtherwise(t *testing.T) {
	tests := map[string]struct {
		do   func(o map[string]any)
		want []string
	}{
		"nothing": {func(map[string]any) {}, nil},
		"defaults and what others have": {func(o map[string]any) {
			o["spec"].(map[string]any)["revisionHistoryLimit"] = int64(10)
			container(o)["imagePullPolicy"] = "Always"
			container(o)["env"] = append(container(o)["env"].([]any), map[string]any{"name": "PROXY", "value": "x"})
		}, nil},
		"an injected container": {func(o map[string]any) {
			set(t, o, []any{map[string]any{"name": "proxy", "image": "mesh"}, container(o)}, "spec", "template", "spec", "containers")
		}, nil},
		"the same number in another type": {func(o map[string]any) { set(t, o, float64(3), "spec", "replicas") }, nil},
		"a value":                         {func(o map[string]any) { set(t, o, int64(5), "spec", "replicas") }, []string{`/spec/replicas "3"→"5"`}},
		"a value in a list": {func(o map[string]any) { container(o)["image"] = "mirror/nginx:1.29" },
			[]string{`/spec/template/spec/containers/0/image "nginx:1.27"→"mirror/nginx:1.29"`}},
		"a label taken off": {func(o map[string]any) { unstructured.RemoveNestedField(o, "metadata", "labels", "tier") },
			[]string{`/metadata/labels/tier "front"→""`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, web)
			test.do(s.live.Object)
			var got []string
			for _, d := range Altered(object(t, web), s.live, nil) {
				got = append(got, fmt.Sprintf("%s %q→%q", d.Path, d.ValueInHub, d.ValueInMember))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("altered: %q, want %q", got, test.want)
			}
		})
	}
}

func TestAlteredMasksSecretsAndLeavesFieldsToOthers(t *testing.T) {
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, stringData: {password: canary}}"
	s := newServer(t, "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, data: {password: Y2FuYXJ5}}")
	if got := Altered(object(t, secret), s.live, nil); len(got) > 0 {
		t.Errorf("stringData is altered: %v", got)
	}
	set(t, s.live.Object, "b3RoZXI=", "data", "password")
	if got := Altered(object(t, secret), s.live, nil); len(got) != 1 || strings.Contains(fmt.Sprint(got), "Y2FuYXJ5") || strings.Contains(fmt.Sprint(got), "b3RoZXI") {
		t.Errorf("altered: %v", got)
	}
	if got := Altered(object(t, secret), s.live, []string{"/data/password"}); len(got) > 0 {
		t.Errorf("an ignored field is altered: %v", got)
	}
}

// If covers reports true, a full comparison finds no difference either.
func TestCoversAgreesWithTheComparison(t *testing.T) {
	s := newServer(t, web)
	changed := s.live.DeepCopy()
	set(t, changed.Object, int64(4), "spec", "replicas")
	shorter := s.live.DeepCopy()
	container(shorter.Object)["env"] = []any{}
	for name, live := range map[string]*unstructured.Unstructured{"same": s.live, "changed": changed, "shorter": shorter} {
		covered := covers(object(t, web).Object, live.Object, nil)
		if same := len(Compare(object(t, web), live, Options{Structural: true})) == 0; covered != same {
			t.Errorf("%s: covered %t, the same %t", name, covered, same)
		}
	}
}

func TestRepairableLeavesWhatNeverStays(t *testing.T) {
	at := func(paths ...string) (list []api.PatchDetail) {
		for _, p := range paths {
			list = append(list, api.PatchDetail{Path: p})
		}
		return list
	}
	got := Repairable(at("/time", "/value", "/once"), at("/time", "/once"), at("/time", "/gone"))
	if !slices.Equal(got, at("/value", "/once")) {
		t.Errorf("repairable: %v", got)
	}
}

// A change made under the manager's own name is attributed to it if that is requested, unless
// somebody else has made it.
func TestUnderOwnName(t *testing.T) {
	s := newServer(t, web)
	set(t, s.live.Object, int64(5), "spec", "replicas")
	own := Differences(s.live, api.FieldManager, Compare(object(t, web), s.live, Options{Structural: true}))
	if len(own) != 1 || len(own[0].By) != 0 {
		t.Fatalf("the difference: %+v", own)
	}
	if by := Actors(UnderOwnName(s.live, api.FieldManager, own)); len(by) != 1 || by[0].String() != "gitfleet (Apply)" {
		t.Errorf("by %v", by)
	}
	if len(own[0].By) != 0 {
		t.Error("it changed its argument")
	}
	s = newServer(t, web)
	s.update("kubectl-edit", "", func(o map[string]any) { container(o)["image"] = "nginx:evil" })
	theirs := Differences(s.live, api.FieldManager, Compare(object(t, web), s.live, Options{Structural: true}))
	if by := Actors(UnderOwnName(s.live, api.FieldManager, theirs)); len(by) != 1 || by[0].Manager != "kubectl-edit" {
		t.Errorf("by %v", by)
	}
}
