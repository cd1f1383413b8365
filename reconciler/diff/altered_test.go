package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// A default that an API server has computed from other fields, and keeps when they change, is set anew; what somebody else has set
// there stays.
func TestOutdatedDefaults(t *testing.T) {
	const policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web}\nspec:\n  podSelector: {}\n"
	cron := func(spec string) string {
		return "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: web}\nspec:\n  jobTemplate:\n    spec:\n      template:\n        spec: " + spec + "\n"
	}
	image := func(name string) string { return cron("{containers: [{name: a, image: " + name + "}]}") }
	at := []string{"spec", "jobTemplate", "spec", "template", "spec"}
	accounts := map[string]any{"serviceAccount": "a", "serviceAccountName": "a"}
	tests := map[string]struct {
		before, desired string
		path            []string
		defaults        map[string]any
		owner           string // who has set them; nobody if it is empty
		want            []string
	}{
		"egress is added":                    {policy + "  ingress: [{}]\n", policy + "  egress: [{}]\n", at[:1], map[string]any{"policyTypes": []any{"Ingress"}}, "", []string{"/spec/policyTypes"}},
		"egress is removed":                  {policy + "  egress: [{}]\n", policy, at[:1], map[string]any{"policyTypes": []any{"Ingress", "Egress"}}, "", []string{"/spec/policyTypes"}},
		"egress is changed":                  {policy + "  egress: [{}]\n", policy + "  egress: [{ports: [{port: 1}]}]\n", at[:1], map[string]any{"policyTypes": []any{"Ingress", "Egress"}}, "", nil},
		"somebody has set the types":         {policy + "  ingress: [{}]\n", policy + "  egress: [{}]\n", at[:1], map[string]any{"policyTypes": []any{"Ingress"}}, "kubectl-edit", nil},
		"an account is removed":              {cron("{serviceAccountName: a, dnsPolicy: Default}"), cron("{dnsPolicy: Default}"), at, accounts, "", []string{"/spec/jobTemplate/spec/template/spec/serviceAccount", "/spec/jobTemplate/spec/template/spec/serviceAccountName"}},
		"another account":                    {cron("{serviceAccount: a}"), cron("{serviceAccount: b}"), at, map[string]any{"serviceAccountName": "a"}, "", []string{"/spec/jobTemplate/spec/template/spec/serviceAccountName"}},
		"an account of a webhook":            {cron("{dnsPolicy: Default}"), cron("{dnsPolicy: None}"), at, accounts, "", nil},
		"the latest image becomes a version": {image("a:latest"), image("a:1"), at, map[string]any{"imagePullPolicy": "Always"}, "", []string{"/spec/jobTemplate/spec/template/spec/containers/0/imagePullPolicy"}},
		"an image gets a digest":             {image("r:5000/a"), image("r:5000/a@sha256:0"), at, map[string]any{"imagePullPolicy": "Always"}, "", []string{"/spec/jobTemplate/spec/template/spec/containers/0/imagePullPolicy"}},
		"another version of an image":        {image("r:5000/a:1"), image("r:5000/a:2"), at, map[string]any{"imagePullPolicy": "IfNotPresent"}, "", nil},
		"a webhook has set the pull policy":  {image("a:1"), image("a:2"), at, map[string]any{"imagePullPolicy": "Always"}, "", nil},
		"a policy is taken over":             {"", policy + "  egress: [{}]\n", at[:1], map[string]any{"policyTypes": []any{"Ingress"}}, "", []string{"/spec/policyTypes"}},
		"a pod template is taken over":       {"", image("a:1"), at, map[string]any{"imagePullPolicy": "Always"}, "", nil},
		"a custom resource has such a field": {"apiVersion: example.com/v1\nkind: NetworkPolicy\nmetadata: {name: web}\nspec: {ingress: []}\n", "apiVersion: example.com/v1\nkind: NetworkPolicy\nmetadata: {name: web}\nspec: {egress: [{}]}\n", at[:1], map[string]any{"policyTypes": []any{"Ingress"}}, "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			desired := object(t, test.desired)
			live := desired.DeepCopy()
			fields, _, _ := unstructured.NestedFieldNoCopy(live.Object, test.path...)
			if list, _ := fields.(map[string]any)["containers"].([]any); list != nil {
				fields = list[0]
			}
			maps.Copy(fields.(map[string]any), test.defaults)
			if test.owner != "" {
				live.SetManagedFields([]metav1.ManagedFieldsEntry{{
					Manager: test.owner, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:policyTypes":{}}}`),
				}})
			}
			r := Request{Desired: desired, Live: live, Manager: api.FieldManager, Force: true}
			if test.before != "" {
				r.Before = object(t, test.before)
			}
			var got []string
			for _, d := range OutdatedDefaults(r).All().Differences(live, api.FieldManager) {
				got = append(got, d.Path)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("outdated: %v, want %v", got, test.want)
			}
		})
	}
}
