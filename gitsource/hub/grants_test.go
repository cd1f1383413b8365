package hub

import (
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/hub/walk"
)

// grantedFiles are what everybody may produce in the tests below.
const grantedFiles = `
-- fleet.yaml --
{apiVersion: v1, kind: Namespace, metadata: {name: web}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: orders}}
---
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: all}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: orders}, {group: "", version: v1, kind: Namespace, name: web}]
  policy: {placementType: PickAll}
-- orders/prod/kustomization.yaml --
namespace: orders
resources: [config.yaml]
-- orders/prod/config.yaml --
{apiVersion: v1, kind: ConfigMap, metadata: {name: orders}, data: {image: good}}
-- orders/plain.yaml --
{apiVersion: v1, kind: ConfigMap, metadata: {name: plain, namespace: orders}}
-- bases/web/kustomization.yaml --
resources: [config.yaml]
-- bases/web/config.yaml --
{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}
-- apps/note.txt --
`

// stagedOfOthers is a placement with a staged run that waits for an approval.
const stagedOfOthers = `
-- staged.yaml --
apiVersion: placement.kubernetes-fleet.io/v1
kind: ResourcePlacement
metadata: {name: staged, namespace: orders}
spec: {resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: plain}], policy: {placementType: PickAll}, strategy: {type: External}}
---
apiVersion: placement.kubernetes-fleet.io/v1
kind: StagedUpdateStrategy
metadata: {name: careful, namespace: orders}
spec: {stages: [{name: all, beforeStageTasks: [{type: Approval}]}]}
---
apiVersion: placement.kubernetes-fleet.io/v1
kind: StagedUpdateRun
metadata: {name: run, namespace: orders}
spec: {placementName: staged, stagedRolloutStrategyName: careful, state: Run}
`

// reservedChart is a chart with an object in a reserved namespace, which is listed.
const reservedChart = `
-- apps/evil/a.yaml --
apiVersion: gitfleet.dev/v1alpha1
kind: ClusterHelmChart
metadata: {name: a}
spec: {chart: {path: apps/evil/chart}, namespace: evil, reservedNamespaces: [kube-system]}
-- apps/evil/chart/Chart.yaml --
{apiVersion: v2, name: a, version: 1.0.0}
-- apps/evil/chart/templates/a.yaml --
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}
-- clusters.yaml --
{apiVersion: cluster.kubernetes-fleet.io/v1, kind: MemberCluster, metadata: {name: one}}
`

// TestGrants loads what apps/evil adds to a commit.
func TestGrants(t *testing.T) {
	all := []string{"*"}
	tests := map[string]struct {
		files string
		// grant is that of apps/evil, beside its path.
		grant grant.Grant
		// refused is part of the only error; empty if the commit is accepted.
		refused string
	}{
		"what everybody has": {},
		"an approval for a run of others": {
			grant:   grant.Grant{Namespaces: []string{"orders"}},
			files:   stagedOfOthers + "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1\nkind: ApprovalRequest\nmetadata: {name: run-before-all, namespace: orders}\nspec: {parentStageRollout: run, targetStage: all}\n",
			refused: `apps/evil/a.yaml:1: spec.parentStageRollout: files in path apps/evil may not roll out ResourcePlacement.placement.kubernetes-fleet.io/orders/staged; move it, or add "rp/orders/staged" to paths[1].placements`,
		},
		"an approval for runs that a placement of others makes": {
			grant:   grant.Grant{Namespaces: []string{"orders"}, Kinds: all},
			files:   strings.Replace(stagedOfOthers, "name: staged,", "name: staged, annotations: {gitfleet.dev/staged-update-strategy: careful},", 1) + "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1\nkind: ApprovalRequest\nmetadata: {name: staged-1a2b3c4d-before-all, namespace: orders}\nspec: {parentStageRollout: staged-1a2b3c4d, targetStage: all}\n",
			refused: `files in path apps/evil may not roll out ResourcePlacement.placement.kubernetes-fleet.io/orders/staged`,
		},
		"a run of a placement of others": {
			grant:   grant.Grant{Namespaces: []string{"orders"}},
			files:   stagedOfOthers + "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1\nkind: StagedUpdateRun\nmetadata: {name: mine, namespace: orders}\nspec: {placementName: staged, stagedRolloutStrategyName: careful, state: Run}\n",
			refused: `apps/evil/a.yaml:4: spec.placementName: files in path apps/evil may not roll out ResourcePlacement.placement.kubernetes-fleet.io/orders/staged`,
		},
		"an approval for a granted placement": {
			grant: grant.Grant{Namespaces: []string{"orders"}, Placements: []string{"rp/orders/staged"}},
			files: stagedOfOthers + "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1\nkind: ApprovalRequest\nmetadata: {name: run-before-all, namespace: orders}\nspec: {parentStageRollout: run, targetStage: all}\n",
		},
		"an eviction from a placement of others": {
			grant:   grant.Grant{Kinds: []string{"ClusterResourcePlacementEviction.*"}, Placements: []string{"crp/evil"}},
			files:   "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacementEviction\nmetadata: {name: a}\nspec: {placementName: all, clusterName: east}\n",
			refused: `spec.placementName: files in path apps/evil may not evict from ClusterResourcePlacement.placement.kubernetes-fleet.io/all; move it, or add "crp/all" to paths[1].placements`,
		},
		"a disruption budget for a placement of others": {
			grant:   grant.Grant{Kinds: []string{"ClusterResourcePlacementDisruptionBudget.*"}, Placements: []string{"crp/evil"}},
			files:   "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacementDisruptionBudget\nmetadata: {name: all}\nspec: {minAvailable: 1}\n",
			refused: `metadata.name: files in path apps/evil may not limit evictions from ClusterResourcePlacement.placement.kubernetes-fleet.io/all`,
		},
		"an eviction from a granted placement": {
			grant: grant.Grant{Kinds: []string{"ClusterResourcePlacementEviction.*"}, Placements: []string{"crp/all"}},
			files: "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacementEviction\nmetadata: {name: a}\nspec: {placementName: all, clusterName: east}\n",
		},
		"a gate": {
			grant:   grant.Grant{Namespaces: []string{"orders"}},
			files:   "-- apps/evil/a.yaml --\napiVersion: gitfleet.dev/v1alpha1\nkind: RolloutGate\nmetadata: {name: soak}\nspec: {soak: {duration: 1s}}\n",
			refused: `apps/evil/a.yaml:1: files in path apps/evil may not produce RolloutGate.gitfleet.dev/soak`,
		},
		"a gate that runs a Job in the namespace of others": {
			grant:   grant.Grant{Kinds: []string{"*"}, Namespaces: []string{"checks"}},
			files:   "-- apps/evil/a.yaml --\napiVersion: gitfleet.dev/v1alpha1\nkind: RolloutGate\nmetadata: {name: smoke}\nspec:\n  job:\n    namespace: orders\n    template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}\n",
			refused: `apps/evil/a.yaml:6: spec.job.namespace: files in path apps/evil may not produce Job.batch/orders/smoke; move it, or add "orders" to paths[1].namespaces`,
		},
		"its own namespace": {
			grant: grant.Grant{Namespaces: []string{"evil-*"}},
			files: "-- apps/evil/a.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: evil-1}}\n",
		},
		"no namespace is granted": {
			files:   "-- apps/evil/a.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: evil}}\n",
			refused: `apps/evil/a.yaml:1: files in path apps/evil may not produce ConfigMap/evil/a; move it, or add "evil" to paths[1].namespaces`,
		},
		"the namespace of others": {
			grant:   grant.Grant{Namespaces: []string{"evil"}},
			files:   "-- apps/evil/a.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: orders}}\n",
			refused: `add "orders" to paths[1].namespaces`,
		},
		"a kind that is not granted": {
			grant:   grant.Grant{Namespaces: []string{"evil"}, Kinds: []string{"ConfigMap"}},
			files:   "-- apps/evil/a.yaml --\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: evil}}\n",
			refused: `add "ServiceAccount" to paths[1].kinds`,
		},
		"an unknown kind that may be cluster-scoped": {
			grant:   grant.Grant{Namespaces: []string{"evil"}},
			files:   "-- apps/evil/a.yaml --\n{apiVersion: example.com/v1, kind: Policy, metadata: {name: a, namespace: evil}}\n",
			refused: `add "Policy.example.com" to paths[1].kinds`,
		},
		"cluster-admin in a list": {
			grant:   grant.Grant{Namespaces: all},
			files:   "-- apps/evil/a.yaml --\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}\n",
			refused: `apps/evil/a.yaml:4: files in path apps/evil may not produce ClusterRoleBinding.rbac.authorization.k8s.io/a; move it, or add "ClusterRoleBinding.rbac.authorization.k8s.io" to paths[1].kinds`,
		},
		"a Namespace": {
			grant:   grant.Grant{Namespaces: []string{"evil"}},
			files:   "-- apps/evil/a.yaml --\n{apiVersion: v1, kind: Namespace, metadata: {name: evil}}\n",
			refused: `add "Namespace" to paths[1].kinds`,
		},
		"a Namespace of another name": {
			grant:   grant.Grant{Namespaces: []string{"evil"}, Kinds: []string{"Namespace"}},
			files:   "-- apps/evil/a.yaml --\n{apiVersion: v1, kind: Namespace, metadata: {name: kube-public-2}}\n",
			refused: `add "kube-public-2" to paths[1].namespaces`,
		},
		"a MemberCluster": {
			grant:   grant.Grant{Namespaces: all, Placements: all},
			files:   "-- apps/evil/a.yaml --\n{apiVersion: cluster.kubernetes-fleet.io/v1, kind: MemberCluster, metadata: {name: mine}, spec: {identity: {kind: User, name: a, apiGroup: rbac.authorization.k8s.io}}}\n",
			refused: `add "MemberCluster.cluster.kubernetes-fleet.io" to paths[1].kinds`,
		},
		"the base of others": {
			grant:   grant.Grant{Namespaces: []string{"evil", "orders"}},
			files:   "-- apps/evil/kustomization.yaml --\nnameSuffix: -b\nresources: [../../orders/prod]\n",
			refused: `apps/evil/kustomization.yaml:2: resources[0]: orders/prod/kustomization.yaml is not in path apps/evil, and its own path does not share it; copy it, or add its directory to paths[2].sharedBases`,
		},
		"the base of others in an unused component": { // nothing would be built of what it includes
			files:   "-- apps/evil/kustomization.yaml --\napiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [../../orders/prod]\n",
			refused: `apps/evil/kustomization.yaml:3: resources[0]: orders/prod/kustomization.yaml is not in path apps/evil`,
		},
		"a shared base": {
			grant: grant.Grant{Namespaces: []string{"evil"}},
			files: "-- apps/evil/kustomization.yaml --\nnamespace: evil\nresources: [../../bases/web]\n",
		},
		"a shared base in the namespace of others": {
			grant:   grant.Grant{Namespaces: []string{"evil"}},
			files:   "-- apps/evil/kustomization.yaml --\nnamespace: orders\nresources: [../../bases/web]\n",
			refused: `bases/web/config.yaml:1: files in path apps/evil may not produce ConfigMap/orders/web`,
		},
		"a patch that pretends another origin": {
			grant: grant.Grant{Namespaces: []string{"evil"}},
			files: "-- apps/evil/kustomization.yaml --\nresources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"config.kubernetes.io/origin\": \"path: ../../fleet.yaml\"}}]'\n" +
				"-- apps/evil/a.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: orders}}\n",
			refused: `files in path apps/evil may not produce ConfigMap/orders/a`,
		},
		"an envelope with a cluster-scoped object": {
			grant:   grant.Grant{Namespaces: []string{"evil"}, Kinds: []string{"ClusterResourceEnvelope.placement.kubernetes-fleet.io"}},
			files:   "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourceEnvelope\nmetadata: {name: a}\ndata:\n  a.yaml: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}\n",
			refused: `add "ClusterRole.rbac.authorization.k8s.io" to paths[1].kinds`,
		},
		"an envelope in a ConfigMap": {
			grant:   grant.Grant{Namespaces: []string{"evil"}},
			files:   "-- apps/evil/a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: evil, annotations: {kubernetes-fleet.io/envelope-configmap: \"true\"}}\ndata:\n  a.yaml: |\n    {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: orders}}\n",
			refused: `data[a.yaml]: files in path apps/evil may not produce Secret/orders/a`,
		},
		"an envelope that cannot be read": {
			grant:   grant.Grant{Namespaces: []string{"evil"}},
			files:   "-- apps/evil/a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: evil, annotations: {kubernetes-fleet.io/envelope-configmap: \"true\"}}\ndata:\n  a.yaml: |\n    {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: [\n",
			refused: `cannot be read, so that it cannot be told`,
		},
		"a placement": {
			grant:   grant.Grant{Namespaces: []string{"evil"}, Kinds: all},
			files:   "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1\nkind: ResourcePlacement\nmetadata: {name: a, namespace: evil}\nspec: {resourceSelectors: [{group: \"\", version: v1, kind: ConfigMap, name: a}]}\n",
			refused: `add "rp/evil/a" to paths[1].placements`,
		},
		"a placement of objects of others": {
			grant:   grant.Grant{Namespaces: []string{"evil"}, Placements: []string{"crp/evil"}},
			files:   "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {name: evil}\nspec: {resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: orders}]}\n",
			refused: `spec.resourceSelectors[0]: files in path apps/evil may not select Namespace/orders; move it, or add "orders" to paths[1].namespaces`,
		},
		"a placement by labels": {
			grant:   grant.Grant{Namespaces: []string{"evil"}, Placements: []string{"crp/evil"}},
			files:   "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {name: evil}\nspec: {resourceSelectors: [{group: \"\", version: v1, kind: Namespace, labelSelector: {matchLabels: {a: b}}}]}\n",
			refused: `files in path apps/evil may not select Namespace by labels, which can match those of others; write names, or add "*" to paths[1].namespaces`,
		},
		"a placement of its own": {
			grant: grant.Grant{Namespaces: []string{"web"}, Placements: []string{"crp/evil"}},
			files: "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {name: evil}\nspec: {resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: web}]}\n",
		},
		"an override": {
			grant:   grant.Grant{Namespaces: []string{"web"}},
			files:   "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceOverride\nmetadata: {name: a, namespace: web}\nspec: {resourceSelectors: [{group: \"\", version: v1, kind: ConfigMap, name: a}], policy: {overrideRules: [{overrideType: Delete, clusterSelector: {}}]}}\n",
			refused: `add "ResourceOverride.placement.kubernetes-fleet.io" to paths[1].kinds`,
		},
		"an override of what is not granted": {
			grant:   grant.Grant{Kinds: []string{"ClusterResourceOverride.*", "Namespace"}},
			files:   "-- apps/evil/a.yaml --\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourceOverride\nmetadata: {name: a}\nspec: {clusterResourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: orders}], policy: {overrideRules: [{overrideType: Delete, clusterSelector: {}}]}}\n",
			refused: `files in path apps/evil may not override Namespace/orders`,
		},
		"the ignore file of a path above": {
			files:   "-- apps/.gitfleetignore --\nevil/*.yaml\n-- apps/evil/a.yaml --\n{}\n",
			refused: `apps/.gitfleetignore: decides whether apps/evil/a.yaml is read, and that is for files in path apps/evil`,
		},
		"an ignore file that ignores a whole path": {
			files:   "-- apps/.gitfleetignore --\nevil\n-- apps/evil/a.yaml --\n{}\n",
			refused: `apps/.gitfleetignore: decides whether apps/evil is read`,
		},
		"an ignore file of its own": {
			files: "-- apps/evil/.gitfleetignore --\n*.yaml\n-- apps/evil/a.yaml --\n{}\n",
		},
		"a kustomization beside the file of others": {
			files:   "-- apps/kustomization.yaml --\nresources: [b.yaml]\n-- apps/b.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: apps}}\n-- apps/one.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: one}}\n",
			refused: `apps/kustomization.yaml: decides whether apps/one.yaml is read`,
		},
		"a generator that copies the file of others": {
			files:   "-- apps/kustomization.yaml --\nnamespace: apps\nconfigMapGenerator: [{name: a, files: [one.yaml]}]\n-- apps/one.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: one}}\n",
			refused: `apps/kustomization.yaml:2: configMapGenerator[0].files[0]: apps/one.yaml is not in path apps, and its own path does not share it`,
		},
		"a transformer's configuration of others": {
			files:   "-- apps/kustomization.yaml --\nnamespace: apps\nconfigurations: [one.yaml]\nresources: [b.yaml]\n-- apps/b.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n-- apps/one.yaml --\nnamespace: [{path: spec/x, kind: ConfigMap}]\n",
			refused: `configurations[0]: apps/one.yaml is not in path apps`,
		},
		"a chart with an object in a reserved namespace": {
			grant:   grant.Grant{Namespaces: []string{"evil"}, Kinds: all},
			files:   reservedChart,
			refused: `apps/evil/chart/templates/a.yaml: files in path apps/evil may not produce ConfigMap/kube-system/a; move it, or add "kube-system" to paths[1].namespaces`,
		},
		"a chart with an object in a granted reserved namespace": {
			grant: grant.Grant{Namespaces: []string{"evil", "kube-system"}, Kinds: all},
			files: reservedChart,
		},
		"everything": {
			grant: grant.Grant{Namespaces: all, Kinds: all, Placements: all},
			files: "-- apps/evil/a.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: orders}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: x}}\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			evil := test.grant
			evil.Path, evil.Field = "apps/evil", "paths[1]"
			opts := Options{Grants: grant.Set{
				{Field: "paths[0]", Namespaces: all, Kinds: all, Placements: all},
				&evil,
				{Path: "orders", Field: "paths[2]", Namespaces: []string{"orders"}},
				{Path: "bases", Field: "paths[3]", Namespaces: all, SharedBases: []string{"bases"}},
				{Path: "apps", Field: "paths[4]", Namespaces: []string{"apps"}},
				{Path: "apps/one.yaml", Field: "paths[5]", Namespaces: []string{"one"}},
			}}
			files := fstest.MapFS{}
			for _, f := range txtar.Parse([]byte(grantedFiles + test.files)).Files {
				files[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			_, err := load(Commit{Hash: "c0ffee"}, files, opts)
			switch {
			case test.refused == "" && err != nil:
				t.Error(err)
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("got %v, want %s", err, test.refused)
			}
			if _, err := load(Commit{Hash: "c0ffee"}, files, Options{}); err != nil && !strings.Contains(test.files, "{}\n") && !strings.Contains(test.files, "[\n") {
				t.Errorf("is refused without grants as well: %v", err)
			}
		})
	}
}

// Each field of a kustomization or a chart that names a file is a reference to it, which the path of the file has to allow.
func TestEachReferenceIsChecked(t *testing.T) {
	for _, field := range []string{
		"resources: [one.yaml]", "patches: [{path: one.yaml}]", "patchesStrategicMerge: [one.yaml]", "patchesJson6902: [{path: one.yaml, target: {version: v1, kind: ConfigMap, name: b}}]",
		"replacements: [{path: one.yaml}]", "openapi: {path: one.yaml}", "crds: [one.yaml]", "configurations: [one.yaml]", "transformers: [one.yaml]", "generators: [one.yaml]",
		"validators: [one.yaml]", "configMapGenerator: [{name: x, envs: [one.yaml]}]", "configMapGenerator: [{name: x, env: one.yaml}]", "secretGenerator: [{name: x, files: [k=one.yaml]}]",
		"helmGlobals: {chartHome: charts}\nhelmCharts: [{name: c, releaseName: r, valuesFile: one.yaml}]", "helmGlobals: {chartHome: charts}\nhelmCharts: [{name: c, releaseName: r, additionalValuesFiles: [one.yaml]}]",
	} {
		files := fstest.MapFS{
			"apps/kustomization.yaml":        {Data: []byte("namespace: apps\n" + field + "\n")},
			"apps/one.yaml":                  {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n")},
			"apps/charts/c/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n")},
			"apps/charts/c/values.yaml":      {Data: []byte("a: b\n")},
			"apps/charts/c/templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")},
		}
		_, err := load(Commit{Hash: "c0ffee"}, files, Options{Grants: grant.Set{
			{Path: "apps", Field: "paths[0]", Namespaces: []string{"*"}}, {Path: "apps/one.yaml", Field: "paths[1]", Namespaces: []string{"*"}},
		}})
		if err == nil || !strings.Contains(err.Error(), "apps/one.yaml is not in path apps, and its own path does not share it") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// Who may not decide for the files of others may not leave them out of the hub.
func TestRootsLeaveOutNoPathOfOthers(t *testing.T) {
	files := fstest.MapFS{
		walk.ConfigFile: {Data: []byte("roots: [web]\n")},
		"web/a.yaml":    {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: web}}\n")},
		"shop/b.yaml":   {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop}}\n")},
	}
	grants := grant.Set{{Field: "paths[0]", Namespaces: []string{"web"}}, {Path: "shop", Field: "paths[1]", Namespaces: []string{"shop"}}}
	const refused = ".gitfleet.yaml: decides whether shop is read, and that is for files in path shop"
	if _, err := load(Commit{Hash: "c0ffee"}, files, Options{Grants: grants}); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("got %v", err)
	}
	files[walk.ConfigFile] = &fstest.MapFile{Data: []byte("roots: [web, shop]\n")}
	if _, err := load(Commit{Hash: "c0ffee"}, files, Options{Grants: grants}); err != nil {
		t.Error(err)
	}
}

// The lock file decides what is built of a remote base, so that it must be granted the objects. A whole hash needs no lock file.
func TestLockFileIsGrantedWhatItDecides(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	base := fstest.MapFS{"kustomization.yaml": {Data: []byte("namespace: shop\nresources: [b.yaml]\n")}, "b.yaml": {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n")}}
	const refused = "files in the path of the whole repository may not produce ConfigMap/shop/b"
	for name, test := range map[string]struct {
		ref, root, refused string
	}{
		"granted":      {"v1", "shop", ""},
		"not granted":  {"v1", "web", refused},
		"a whole hash": {commit, "web", ""},
	} {
		files := fstest.MapFS{
			lockfile.Name:             {Data: []byte("bases: [{url: 'https://example.com/org/bases', ref: v1, commit: " + commit + "}]\n")},
			"shop/kustomization.yaml": {Data: []byte("resources: ['https://example.com/org/bases?ref=" + test.ref + "']\n")},
		}
		_, err := load(Commit{Hash: "c0ffee"}, files, Options{
			Bases:  func(string, string) (fs.FS, error) { return base, nil },
			Grants: grant.Set{{Field: "paths[0]", Namespaces: []string{test.root}}, {Path: "shop", Field: "paths[1]", Namespaces: []string{"shop"}}},
		})
		if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A shared base is never deployed by itself, so that a reference to it cannot take it away from others.
func TestSharedBasesAreNotDeployed(t *testing.T) {
	opts := Options{Grants: grant.Set{{Field: "paths[0]", Namespaces: []string{"*"}, SharedBases: []string{"shared"}}}}
	files := fstest.MapFS{
		"shared/kustomization.yaml": {Data: []byte("namespace: web\nresources: [a.yaml]\n")},
		"shared/a.yaml":             {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n")},
		"shared/plain/b.yaml":       {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: web}}\n")},
	}
	s, err := load(Commit{Hash: "c0ffee"}, files, opts)
	if err != nil || len(s.Objects) != 0 || len(s.Warnings) != 2 {
		t.Errorf("got %s", describe(s, err))
	}
}

// endingFiles are not needed any more once a.yaml is read, which is after the walk.
type endingFiles struct {
	fs.FS
	done chan struct{}
	end  func()
}

func (f endingFiles) Done() <-chan struct{} { return f.done }

func (f endingFiles) Open(name string) (fs.File, error) {
	if name == "a.yaml" {
		f.end()
	}
	return f.FS.Open(name)
}

// No build begins when its commit is not needed any more, although kustomize knows no context.
func TestNoBuildBeginsForAnUnneededCommit(t *testing.T) {
	files := fstest.MapFS{"kustomization.yaml": {Data: []byte("namespace: web\nresources: [a.yaml]\n")}, "a.yaml": {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n")}}
	done := make(chan struct{})
	end := sync.OnceFunc(func() { close(done) })
	if _, err := load(Commit{Hash: "c0ffee"}, endingFiles{files, done, end}, Options{}); err == nil || !strings.Contains(err.Error(), "build kustomization.yaml: the commit is not needed any more") {
		t.Errorf("got %v", err)
	}
}
