package main

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// Removing the last overlay of a base is a warning. Taking the namespace from a base that was deployed
// itself refuses the commit, and removing it does not.
func TestABaseWithoutOverlays(t *testing.T) {
	const fleet = `apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: member-1}
spec: {identity: {kind: User, name: gitfleet}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
`
	const settings, unused = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n", "web/base/kustomization.yaml:1: no kustomization uses this base"
	base := map[string]string{"fleet.yaml": fleet, "web/base/kustomization.yaml": "resources: [settings.yaml]\n", "web/base/settings.yaml": settings}
	for name, test := range map[string]struct {
		before, after map[string]string
		code          exit.Code
		says          string
	}{
		"the overlay is removed": {map[string]string{"web/prod/kustomization.yaml": "namespace: shop\nresources: [../base]\n"},
			map[string]string{"web/prod/kustomization.yaml": ""}, exit.OK, unused},
		"the namespace is removed": {map[string]string{"web/base/kustomization.yaml": "namespace: shop\nresources: [settings.yaml]\n"},
			map[string]string{"web/base/kustomization.yaml": "resources: [settings.yaml]\n"}, exit.Failed, "web/base/kustomization.yaml was deployed by the commit in force"},
		"the base is removed": {map[string]string{"web/base/kustomization.yaml": "namespace: shop\nresources: [settings.yaml]\n"},
			map[string]string{"web/base/kustomization.yaml": "", "web/base/settings.yaml": ""}, exit.OK, "1 object on 1 cluster would be deleted"},
		"a typo in what was deployed": {map[string]string{"web/base/kustomization.yaml": "namespace: shop\nresources: [settings.yaml]\n"},
			map[string]string{"web/base/kustomization.yaml": "namespace: shop\nresources: [setings.yaml]\n"}, exit.Failed, "no other kustomization uses this one"},
		"a typo in an overlay": {map[string]string{"web/prod/kustomization.yaml": "namespace: shop\nresources: [../base]\n"},
			map[string]string{"web/prod/kustomization.yaml": "namespace: shop\nresources: [../bas]\n"}, exit.Failed, "web/prod/kustomization.yaml:2: resources[0]: the commit has no web/bas"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gitrepo.New(t)
			g.Write(base)
			from := g.Commit("before", test.before)
			to := g.Commit("after", test.after)
			for _, name := range []string{"validate", "plan"} {
				code, out, errOut := command(name, g.Dir+"@"+from+".."+to)
				if _, document, _ := command("validate", "-o", "json", g.Dir); test.says == unused && !strings.Contains(document, `"rule": "dead-configuration"`) {
					t.Errorf("its rule is another one:\n%s", document)
				}
				if failed := code == exit.Failed; failed != (test.code == exit.Failed) || name == "validate" && !strings.Contains(out+errOut, test.says) {
					t.Errorf("%s: exit code %d, want %d, and %q in:\n%s%s", name, code, test.code, test.says, out, errOut)
				}
			}
		})
	}
}
