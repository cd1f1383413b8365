package controllers

import (
	"encoding/base64"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
)

var certificate = base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// A field belongs to a controller exactly if the object has the sign of it.
func TestFieldsOfControllers(t *testing.T) {
	const (
		role    = "apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}"
		webhook = "apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration"
		crd     = "apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition"
	)
	bundle := "clientConfig: {caBundle: " + certificate + "}"
	tests := map[string]struct {
		object string
		want   []string
	}{
		"an aggregated role":             {role + ", aggregationRule: {clusterRoleSelectors: []}, rules: []", []string{"/rules"}},
		"an aggregated role of few":      {role + ", aggregationRule: {}", []string{"/rules"}},
		"a role":                         {role + ", rules: []", nil},
		"a namespaced role":              {"apiVersion: rbac.authorization.k8s.io/v1, kind: Role, aggregationRule: {}, rules: []", nil},
		"a webhook":                      {webhook + ", metadata: {name: x}, webhooks: [{name: a, " + bundle + "}]", nil},
		"a webhook with a placeholder":   {webhook + ", metadata: {name: x}, webhooks: [{name: a, clientConfig: {caBundle: Cg==}}, {name: b, clientConfig: {}}, {name: c, clientConfig: {caBundle: ''}}]", []string{"/webhooks/0/clientConfig/caBundle", "/webhooks/2/clientConfig/caBundle"}},
		"an injected webhook":            {webhook + ", metadata: {annotations: {cert-manager.io/inject-ca-from: a/b}}, webhooks: [{name: a, clientConfig: {}}, {name: b, " + bundle + "}]", []string{"/webhooks/0/clientConfig/caBundle", "/webhooks/1/clientConfig/caBundle"}},
		"a mutating webhook":             {"apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {annotations: {cert-manager.io/inject-ca-from-secret: a/b}}, webhooks: [{clientConfig: {}}]", []string{"/webhooks/0/clientConfig/caBundle"}},
		"an injected definition":         {crd + ", metadata: {annotations: {cert-manager.io/inject-apiserver-ca: 'true'}}, spec: {conversion: {webhook: {clientConfig: {service: {}}}}}", []string{"/spec/conversion/webhook/clientConfig/caBundle"}},
		"a definition without a webhook": {crd + ", metadata: {annotations: {cert-manager.io/inject-apiserver-ca: 'true'}}, spec: {conversion: {strategy: None}}", nil},
		"not asked for":                  {crd + ", metadata: {annotations: {cert-manager.io/inject-apiserver-ca: 'false'}}, spec: {conversion: {webhook: {clientConfig: {}}}}", nil},
		"an API service":                 {"apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {annotations: {service.beta.openshift.io/inject-cabundle: 'true'}}, spec: {version: v1}", []string{"/spec/caBundle"}},
		"a config map":                   {"apiVersion: v1, kind: ConfigMap, metadata: {annotations: {service.beta.openshift.io/inject-cabundle: 'true'}}, data: {a: b}", []string{"/data/service-ca.crt"}},
		"a trusted bundle":               {"apiVersion: v1, kind: ConfigMap, metadata: {labels: {config.openshift.io/inject-trusted-cabundle: 'true'}}, data: {}", []string{"/data/ca-bundle.crt"}},
		"another config map":             {"apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {service-ca.crt: x}", nil},
		"a token":                        {"apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: x}, data: {token: eA==}", []string{"/data/token", "/data/ca.crt", "/data/namespace"}},
		"a secret":                       {"apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: x}, data: {token: eA==}", nil},
		"a bound volume":                 {"apiVersion: v1, kind: PersistentVolume, metadata: {name: x}, spec: {claimRef: {name: a, uid: b, resourceVersion: '7'}}", []string{"/spec/claimRef/uid", "/spec/claimRef/resourceVersion"}},
		"a dumped Deployment":            {"apiVersion: apps/v1, kind: Deployment, metadata: {name: x, annotations: {deployment.kubernetes.io/revision: '7', a: b}}", []string{"/metadata/annotations/deployment.kubernetes.io~1revision"}},
		"a dumped DaemonSet":             {"apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x, annotations: {deprecated.daemonset.template.generation: '7'}}", []string{"/metadata/annotations/deprecated.daemonset.template.generation"}},
		"a provisioned claim":            {"apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, annotations: {volume.kubernetes.io/storage-provisioner: y}}", []string{"/metadata/annotations/volume.kubernetes.io~1storage-provisioner"}},
		"a reserved volume":              {"apiVersion: v1, kind: PersistentVolume, metadata: {name: x}, spec: {claimRef: {name: a, namespace: b}}", nil},
		"a dumped claim":                 {"apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {pv.kubernetes.io/bind-completed: 'yes', a: b}}", []string{"/metadata/annotations/pv.kubernetes.io~1bind-completed"}},
		"a namespace":                    {"apiVersion: v1, kind: Namespace, metadata: {name: x}", nil},
		"strange types":                  {webhook + ", metadata: 7, webhooks: {a: b}", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := object(t, "{"+test.object+"}")
			before := o.DeepCopy()
			if got := Pointers(o); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
			stripped := Strip(o)
			if !reflect.DeepEqual(o, before) {
				t.Error("the object was changed")
			}
			Each(stripped, func(f *Field, path []string, value any) {
				if value != nil {
					t.Errorf("%s is left with %v", Pointer(path), value)
				}
			})
		})
	}
}

// Strip returns an object that has none of these fields itself, without a copy.
func TestStripSharesWhatIsUnchanged(t *testing.T) {
	o := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}")
	if Strip(o) != o {
		t.Error("it was copied")
	}
	o = object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, aggregationRule: {}, rules: [{}]}")
	want := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, aggregationRule: {}}")
	if got := Strip(o); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// An autoscaler scales what it names, in its own namespace.
func TestScales(t *testing.T) {
	deployment := api.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	tests := map[string]struct {
		object string
		want   api.ID
		ok     bool
	}{
		"HPA":             {"apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: shop}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}", deployment, true},
		"an older HPA":    {"apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {namespace: shop}, spec: {scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}}", api.ID{Group: "argoproj.io", Kind: "Rollout", Namespace: "shop", Name: "web"}, true},
		"KEDA":            {"apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {namespace: shop}, spec: {scaleTargetRef: {name: web}}", deployment, true},
		"no name":         {"apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {namespace: shop}, spec: {scaleTargetRef: {}}", api.ID{}, false},
		"another kind":    {"apiVersion: keda.sh/v1alpha1, kind: ScaledJob, metadata: {namespace: shop}, spec: {scaleTargetRef: {name: web}}", api.ID{}, false},
		"a strange value": {"apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: shop}, spec: {scaleTargetRef: {apiVersion: a/b/c, name: web}}", api.ID{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := Scales(object(t, "{"+test.object+"}"))
			if ok != test.ok || ok && got != test.want {
				t.Errorf("%v, %v", got, ok)
			}
		})
	}
}

// A deletion is no drift only if a controller makes it, which the manifest shows.
func TestRuns(t *testing.T) {
	tests := map[string]struct {
		object         string
		deletes, ended bool
	}{
		"a Job with a TTL":           {"apiVersion: batch/v1, kind: Job, spec: {ttlSecondsAfterFinished: 0}, status: {conditions: [{type: Complete, status: 'True'}]}", true, true},
		"one that runs":              {"apiVersion: batch/v1, kind: Job, spec: {ttlSecondsAfterFinished: 0}, status: {conditions: [{type: Suspended, status: 'True'}, {type: Failed, status: 'False'}]}", true, false},
		"one that failed, no TTL":    {"apiVersion: batch/v1, kind: Job, spec: {}, status: {conditions: [{type: Failed, status: 'True'}]}", false, true},
		"a Pod that succeeded":       {"apiVersion: v1, kind: Pod, spec: {restartPolicy: Never}, status: {phase: Succeeded}", true, true},
		"a Pod that was evicted":     {"apiVersion: v1, kind: Pod, spec: {restartPolicy: OnFailure}, status: {phase: Failed}", true, false},
		"a Pod that serves":          {"apiVersion: v1, kind: Pod, spec: {}, status: {phase: Running}", false, false},
		"a workflow":                 {"apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {ttlStrategy: {secondsAfterCompletion: 5}}, status: {phase: Error}", true, true},
		"a request":                  {"apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, status: {conditions: [{type: Approved, status: 'True'}]}", true, true},
		"a set of Jobs":              {"apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {ttlSecondsAfterFinished: 9}, status: {}", true, false},
		"a Volcano Job":              {"apiVersion: batch.volcano.sh/v1alpha1, kind: Job, spec: {ttlSecondsAfterFinished: 9}, status: {state: {phase: Completed}}", true, true},
		"a Spark application":        {"apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, spec: {timeToLiveSeconds: 9}, status: {applicationState: {state: FAILED}}", true, true},
		"a CronJob":                  {"apiVersion: batch/v1, kind: CronJob, spec: {ttlSecondsAfterFinished: 9}", false, false},
		"conditions of a wrong type": {"apiVersion: batch/v1, kind: Job, spec: 7, status: {conditions: [7, {type: 7, status: 'True'}]}", false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := object(t, "{"+test.object+"}")
			if deletes, ended := RunOf(o) != nil, HasEnded(o); deletes != test.deletes || ended != test.ended {
				t.Errorf("deletes %v, ended %v", deletes, ended)
			}
		})
	}
}

// Every rule can be documented, and its fix can follow a semicolon.
func TestRulesAreComplete(t *testing.T) {
	for _, f := range Fields {
		if len(f.Kinds) == 0 || len(f.Path) == 0 || f.Sign == "" || f.given == nil || f.Owner == "" || f.Fix == "" {
			t.Errorf("%+v", f)
		}
	}
	for _, r := range Runs {
		if r.Sign == "" || r.deletes == nil || r.Owner == "" || (r.conditions == nil) == (r.phase == nil) {
			t.Errorf("%+v", r)
		}
	}
}

// What a controller has added to a field of the manifest is applied with it, and nothing else is.
func TestKeep(t *testing.T) {
	claim := func(size string) string {
		return `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"},"spec":{"resources":{"requests":{"storage":"` + size + `"}}}}`
	}
	account := func(secrets string) string {
		return `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"web"}` + secrets + `}`
	}
	service := func(rollout, selector string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","annotations":{"argo-rollouts.argoproj.io/managed-by-rollouts":"` + rollout + `"}},"spec":{` + selector + `}}`
	}
	const own, extended = `"selector":{"app":"web"}`, `"selector":{"app":"web","rollouts-pod-template-hash":"5d9"}`
	webhook := func(expressions string) string {
		return `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"web"},"webhooks":[{"name":"a.example.com"},{"name":"b.example.com","namespaceSelector":{` + expressions + `}}]}`
	}
	const mine, others = `{"key":"team","operator":"Exists"}`, `{"key":"team","operator":"DoesNotExist"}`
	const aks = `{"key":"kubernetes.azure.com/managedby","operator":"NotIn","values":["aks"]},{"key":"control-plane","operator":"NotIn","values":["true"]}`
	expressions := func(list string) string { return webhook(`"matchExpressions":[` + list + `]`) }
	tests := map[string]struct{ git, live, want string }{
		"exemptions of AKS":          {expressions(mine), expressions(mine + "," + aks), expressions(mine + "," + aks)},
		"exemptions of AKS first":    {expressions(mine), expressions(aks + "," + mine), expressions(aks + "," + mine)},
		"other expressions in Git":   {expressions(mine), expressions(aks + "," + others), expressions(mine + "," + aks)},
		"an empty selector in Git":   {webhook(""), expressions(aks), expressions(aks)},
		"exemptions that Git has":    {expressions(aks), expressions(aks + "," + others), expressions(aks)},
		"an expression of a user":    {expressions(mine), expressions(mine + "," + others), expressions(mine)},
		"a webhook that is gone":     {expressions(mine), `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","webhooks":[]}`, expressions(mine)},
		"a hash of a Rollout":        {service("", own), service("web", extended), service("", extended)},
		"another selector in Git":    {service("", `"selector":{"app":"new"}`), service("web", extended), service("", `"selector":{"app":"new","rollouts-pod-template-hash":"5d9"}`)},
		"other keys of a Rollout":    {service("", own), service("web", `"selector":{"app":"web","tier":"x"}`), service("", own)},
		"a hash that a user has set": {service("", own), service("", extended), service("", own)},
		"a hash in Git":              {service("", `"selector":{"rollouts-pod-template-hash":"1"}`), service("web", extended), service("", `"selector":{"rollouts-pod-template-hash":"1"}`)},
		"Git sets no selector":       {service("", `"type":"ClusterIP"`), service("web", extended), service("", `"type":"ClusterIP"`)},
		"a larger claim":             {claim("1Gi"), claim("5Gi"), claim("5Gi")},
		"a claim that Git enlarges":  {claim("10Gi"), claim("5Gi"), claim("10Gi")},
		"the same size, in MiB":      {claim("1Gi"), claim("1024Mi"), claim("1Gi")},
		"no size":                    {claim("x"), claim("5Gi"), claim("x")},
		"a pull secret of OpenShift": {account(`,"imagePullSecrets":[{"name":"mine"}]`), account(`,"imagePullSecrets":[{"name":"web-dockercfg-x"},{"name":"mine"}]`), account(`,"imagePullSecrets":[{"name":"mine"},{"name":"web-dockercfg-x"}]`)},
		"a pull secret of a user":    {account(`,"imagePullSecrets":[{"name":"mine"}]`), account(`,"imagePullSecrets":[{"name":"mine"},{"name":"other"}]`), account(`,"imagePullSecrets":[{"name":"mine"}]`)},
		"of another ServiceAccount":  {account(`,"imagePullSecrets":[{"name":"mine"}]`), account(`,"imagePullSecrets":[{"name":"api-dockercfg-x"}]`), account(`,"imagePullSecrets":[{"name":"mine"}]`)},
		"Git sets no pull secrets":   {account(``), account(`,"imagePullSecrets":[{"name":"web-dockercfg-x"}]`), account(``)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parse := func(text string) *unstructured.Unstructured {
				o := &unstructured.Unstructured{}
				if err := o.UnmarshalJSON([]byte(text)); err != nil {
					t.Fatal(err)
				}
				return o
			}
			git := parse(test.git)
			got := Keep(git, parse(test.live))
			if !reflect.DeepEqual(got, parse(test.want)) || !reflect.DeepEqual(git, parse(test.git)) {
				t.Errorf("it is %v, want %s", got, test.want)
			}
			if test.git == test.want && got != git {
				t.Error("it was copied")
			}
		})
	}
}
