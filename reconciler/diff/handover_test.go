package diff

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An apply of what Leave returns changes no field that is left to others, although the manifest
// no longer sets it and gitfleet owns it.
func TestLeaveHandsOver(t *testing.T) {
	const replicas, image = "/spec/replicas", "/spec/template/spec/containers/0/image"
	left := strings.Replace(web, "replicas: 3", "paused: false", 1)
	for name, do := range map[string]func(*server){
		"only gitfleet owns it":                  func(*server) {},
		"kubectl has applied it as gitfleet has": func(s *server) { s.apply("kubectl", web) },
		"an autoscaler owns it":                  func(s *server) { s.scale("hpa", 7) },
		"somebody has edited it": func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) { set(s.t, o, int64(2), "spec", "replicas") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, web)
			do(s)
			desired := object(t, left)
			before := desired.DeepCopy()
			sent := leave(t, desired, s.live, replicas, image, "/spec/no/such")
			for _, d := range Compare(s.dryRunOf(api.FieldManager, sent), s.live, Options{}) {
				if d.Path == replicas {
					t.Errorf("applying it would change %v", d)
				}
			}
			if goes := Releases(s.live, api.FieldManager, "spec", "replicas"); goes != strings.Contains(name, "gitfleet") {
				t.Errorf("it would go: %t", goes)
			}
			if !reflect.DeepEqual(desired, before) {
				t.Error("the manifest was changed")
			}
			if alone := leave(t, desired, s.live); !reflect.DeepEqual(alone, desired) {
				t.Errorf("without pointers it is %v", alone)
			}
		})
	}
}

// Fields that belong to controllers are not compared in any way of comparing.
func TestFieldsOfControllersNeverDiffer(t *testing.T) {
	const role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, aggregationRule: {clusterRoleSelectors: []}, rules: RULES}"
	hub, member := object(t, strings.Replace(role, "RULES", "[]", 1)), object(t, strings.Replace(role, "RULES", "[{verbs: [get]}]", 1))
	for _, structural := range []bool{false, true} {
		if got := Compare(hub, member, Options{Structural: structural}); len(got) > 0 {
			t.Errorf("structural %t: %v", structural, got)
		}
	}
	if got := Altered(hub, member, nil); len(got) > 0 {
		t.Errorf("altered: %v", got)
	}
	hook := "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: x}, webhooks: [{name: a, clientConfig: {caBundle: BUNDLE, url: URL}}]}"
	hub, member = object(t, strings.NewReplacer("BUNDLE", "Cg==", "URL", "a").Replace(hook)), object(t, strings.NewReplacer("BUNDLE", "eA==", "URL", "b").Replace(hook))
	var paths []string
	for _, d := range Compare(hub, member, Options{}) {
		paths = append(paths, d.Path)
	}
	if !slices.Equal(paths, []string{"/webhooks/0/clientConfig/url"}) {
		t.Errorf("differences: %q", paths)
	}
}
