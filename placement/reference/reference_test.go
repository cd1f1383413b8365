package reference

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
)

func object(t *testing.T, text string) *api.Object {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return &api.Object{ID: api.IDOf(u), Content: u}
}

// pod returns a Deployment whose pod has some fields.
func pod(fields string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  template:\n    spec:\n      " + strings.ReplaceAll(fields, "\n", "\n      ") + "\n"
}

func TestOf(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"environment": {pod("containers:\n- env: [{valueFrom: {configMapKeyRef: {name: c, key: a}}}, {valueFrom: {secretKeyRef: {name: s, key: a}}}, {valueFrom: {fieldRef: {}}}, {value: x}]\n  envFrom: [{configMapRef: {name: all}}, {secretRef: {name: s2, optional: true}}]"),
			"ConfigMap/shop/all spec.template.spec.containers[0].envFrom[0].configMapRef.name; ConfigMap/shop/c spec.template.spec.containers[0].env[0].valueFrom.configMapKeyRef.name; Secret/shop/s spec.template.spec.containers[0].env[1].valueFrom.secretKeyRef.name"},
		"volumes": {pod("volumes: [{configMap: {name: c}}, {secret: {secretName: s}}, {secret: {secretName: o, optional: true}}, {projected: {sources: [{secret: {name: p}}, {serviceAccountToken: {}}]}}, {emptyDir: {}}]"),
			"ConfigMap/shop/c spec.template.spec.volumes[0].configMap.name; Secret/shop/p spec.template.spec.volumes[3].projected.sources[0].secret.name; Secret/shop/s spec.template.spec.volumes[1].secret.secretName"},
		"accounts and classes": {pod("serviceAccountName: web\npriorityClassName: high\nimagePullSecrets: [{name: pull}]"),
			"Secret/shop/pull spec.template.spec.imagePullSecrets[0].name; ServiceAccount/shop/web spec.template.spec.serviceAccountName; PriorityClass.scheduling.k8s.io/high spec.template.spec.priorityClassName"},
		"what every cluster has": {pod("serviceAccountName: default\npriorityClassName: system-node-critical"), ""},
		"a claim":                {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a, namespace: shop}\nspec: {storageClassName: fast}\n", "StorageClass.storage.k8s.io/fast spec.storageClassName"},
		"no class":               {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a, namespace: shop}\nspec: {storageClassName: ''}\n", ""},
		"claims of a set":        {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a, namespace: shop}\nspec: {volumeClaimTemplates: [{spec: {storageClassName: fast}}]}\n", "StorageClass.storage.k8s.io/fast spec.volumeClaimTemplates[0].spec.storageClassName"},
		"an Ingress":             {"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a, namespace: shop}\nspec: {tls: [{secretName: tls}]}\n", "Secret/shop/tls spec.tls[0].secretName"},
		"an issued Ingress":      {"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a, namespace: shop, annotations: {cert-manager.io/cluster-issuer: le}}\nspec: {tls: [{secretName: tls}]}\n", ""},
		"a custom resource":      {"apiVersion: example.com/v1\nkind: Tool\nmetadata: {name: a, namespace: shop}\n", "CustomResourceDefinition.apiextensions.k8s.io/example.com/Tool "},
		"nonsense":               {pod("containers: [7, {env: x, envFrom: [~, {configMapRef: []}]}]\nvolumes: {a: b}\nserviceAccountName: 3"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range Of(object(t, test.text).Content) {
				got = append(got, r.To.String()+" "+r.Field)
			}
			if text := strings.Join(got, "; "); text != test.want {
				t.Errorf("got  %s\nwant %s", text, test.want)
			}
		})
	}
}

func TestMade(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: a, namespace: shop}\n":                                                     "Secret/shop/a",
		"apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: a, namespace: shop}\nspec: {target: {name: b}}\n":                          "Secret/shop/b",
		"apiVersion: external-secrets.io/v1\nkind: ClusterExternalSecret\nmetadata: {name: a}\nspec: {externalSecretName: b}\n":                                "Secret/*/b",
		"apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: a, namespace: shop}\nspec: {secretName: b}\n":                                     "Secret/shop/b",
		"apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: a, namespace: shop}\n":                                                         "Secret/shop/a",
		"apiVersion: isindir.github.com/v1alpha3\nkind: SopsSecret\nmetadata: {name: a, namespace: shop}\nspec: {secretTemplates: [{name: b}]}\n":              "Secret/shop/b",
		"apiVersion: secrets-store.csi.x-k8s.io/v1\nkind: SecretProviderClass\nmetadata: {name: a, namespace: shop}\nspec: {secretObjects: [{secretName: b}]}": "Secret/shop/b",
		"apiVersion: trust.cert-manager.io/v1alpha1\nkind: Bundle\nmetadata: {name: a}\n":                                                                      "ConfigMap/*/a",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: shop, annotations: {reflector.v1.k8s.emberstack.com/reflection-auto-enabled: 'true'}}":   "Secret/*/a",
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b}\nspec: {group: e.com, names: {kind: Tool}}\n":                "CustomResourceDefinition.apiextensions.k8s.io/e.com/Tool",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n":                                                                              "",
	} {
		made := Made(object(t, text).Content)
		var rest []string
		for _, id := range made[1:] {
			rest = append(rest, id.String())
		}
		if got := strings.Join(rest, " "); got != want {
			t.Errorf("%s makes %s, want %s", made[0], got, want)
		}
	}
}

// A missing object is reported once for all clusters that lack it, with what adds it. What clusters usually have by themselves
// is missing only if the repository has it.
func TestMissing(t *testing.T) {
	web := object(t, pod("serviceAccountName: web\npriorityClassName: high\nvolumes: [{secret: {secretName: s}}, {configMap: {name: kube-root-ca.crt}}]"))
	account := object(t, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web, namespace: shop}\n")
	external := object(t, "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: s, namespace: shop}\n")
	ingress := object(t, "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web, namespace: shop}\nspec: {tls: [{secretName: t}]}\n")
	widget := object(t, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: shop}\n")
	widgets := object(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec: {group: example.com, names: {kind: Widget}}\n")
	class := object(t, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\n")
	overlay := object(t, "apiVersion: gitfleet.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {name: accounts}\n")
	overlay.Overlay = &api.BuiltOverlay{Builds: map[string]*api.OverlayBuild{"accounts": {Objects: []*api.Object{account}}}}
	type placed struct {
		key     api.PlacementKey
		objects []Placed
	}
	namespace := object(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	inOverlay := object(t, "apiVersion: gitfleet.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {name: base}\n")
	inOverlay.Overlay = &api.BuiltOverlay{Builds: map[string]*api.OverlayBuild{"base": {Objects: []*api.Object{namespace}}}}
	inDefault := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n")
	alone := func(key api.PlacementKey, objects ...*api.Object) []placed {
		var all []Placed
		for _, o := range objects {
			all = append(all, Placed{Object: o})
		}
		return []placed{{key, all}}
	}
	place := func(key api.PlacementKey, objects ...*api.Object) []placed {
		return alone(key, append(objects, namespace)...)
	}
	crp, rp := api.PlacementKey{Name: "shop"}, api.PlacementKey{Namespace: "shop", Name: "web"}
	for name, test := range map[string]struct {
		hub  []*api.Object
		on   map[string][]placed
		want []string
	}{
		"all there": {nil, map[string][]placed{"a": place(crp, web, account, external, class)}, nil},
		"nothing in the hub": {nil, map[string][]placed{"a": place(crp, web), "b": place(crp, web), "c": place(crp, web, account, external)}, []string{
			"Secret/shop/s on a b: the commit has no such object, and nothing known makes it; add it, or write optional: true if it may be missing",
			"ServiceAccount/shop/web on a b: the commit has no such object, and nothing known makes it; add it",
		}},
		"what cannot be optional": {nil, map[string][]placed{"a": place(crp, ingress)}, []string{
			"Secret/shop/t on a: the commit has no such object, and nothing known makes it; add it",
		}},
		"in another overlay": {[]*api.Object{overlay}, map[string][]placed{"a": place(crp, web, external, class)}, []string{
			"ServiceAccount/shop/web on a: ClusterOverlay.gitfleet.dev/accounts has it; place that on these clusters as well, or add the object",
		}},
		"a definition that is not selected": {[]*api.Object{widgets}, map[string][]placed{"a": place(crp, widget)}, []string{
			"the CustomResourceDefinition of Widget.example.com on a: select its CustomResourceDefinition in crp/shop: {group: apiextensions.k8s.io, version: v1, kind: CustomResourceDefinition, name: widgets.example.com}",
		}},
		"not selected by a ResourcePlacement": {[]*api.Object{account, external, class}, map[string][]placed{"a": place(rp, web, external)}, []string{
			`ServiceAccount/shop/web on a: select it in rp/shop/web: {group: "", version: v1, kind: ServiceAccount, name: web}`,
			`PriorityClass.scheduling.k8s.io/high on a: select it in rp/shop/web: {group: scheduling.k8s.io, version: v1, kind: PriorityClass, name: high}`,
		}},
		"not selected by a ClusterResourcePlacement": {[]*api.Object{account, external}, map[string][]placed{"a": place(crp, web, account)}, []string{
			`Secret/shop/s on a: select it in crp/shop: {group: "", version: v1, kind: Namespace, name: shop}`,
		}},
		"a Namespace that nothing has": {nil, map[string][]placed{"a": alone(crp, account, inDefault), "b": alone(crp, external, account)}, []string{
			"Namespace/shop on a b: the commit has no such object; add it, or write gitfleet.dev/missing-references: ignore on crp/shop if these clusters have it",
		}},
		"a Namespace that is not selected": {[]*api.Object{namespace}, map[string][]placed{"a": alone(crp, account)}, []string{
			`Namespace/shop on a: select it in crp/shop: {group: "", version: v1, kind: Namespace, name: shop, selectionScope: NamespaceOnly}`,
		}},
		"a Namespace that an overlay has": {[]*api.Object{inOverlay}, map[string][]placed{"a": alone(crp, account)}, []string{
			"Namespace/shop on a: ClusterOverlay.gitfleet.dev/base has it; place that on these clusters as well",
		}},
		"the Namespace of a ResourcePlacement": {[]*api.Object{namespace}, map[string][]placed{"a": alone(rp, account)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var all []OnClusters
			for _, cluster := range []string{"c", "b", "a"} {
				for _, p := range test.on[cluster] {
					all = append(all, OnClusters{Content: ContentOf(p.objects), Placement: p.key, Clusters: slices.Values([]string{cluster})})
				}
			}
			var got []string
			for _, f := range Missing(test.hub, all) {
				got = append(got, fmt.Sprintf("%s on %s: %s", f.Name(), strings.Join(f.Clusters, " "), f.Fix()))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}
