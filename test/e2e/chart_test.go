package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/simulated"
)

const chart = "../../deploy/helm/gitfleet"

// helm runs Helm without the user's configuration, and returns its output.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	if testing.Short() {
		t.Skip("building Helm takes minutes the first time")
	}
	program, err := checkout.Helm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// template renders the chart as the release gitfleet in the namespace gitfleet.
func template(t *testing.T, values string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return helm(t, "template", "gitfleet", chart, "--namespace", "gitfleet", "--values", file)
}

const bareValues = `
image: {tag: latest}
config:
  source: {url: "https://git.example.com/org/fleet"}
`

const chartValues = bareValues + "  members: {secretNamespace: gitfleet-members}\n"

// replicaValues are chartValues for two replicas.
const replicaValues = chartValues + "  highAvailability: {lease: {namespace: gitfleet-lease}}\nreplicas: 2\n"

// The chart renders the same objects as the kustomizations, for one replica and for two, except
// for Helm's labels. A real API server accepts them.
func TestChartRendersTheKustomization(t *testing.T) {
	for dir, values := range map[string]string{"kubernetes": chartValues, "replicas": replicaValues} {
		t.Run(dir, func(t *testing.T) {
			text, err := template(t, values+"serviceMonitor: {enabled: true}\nprometheusRule: {enabled: true}\n")
			if err != nil {
				t.Fatal(text)
			}
			rendered, built := readObjects(t, text), buildKustomization(t, dir, "components:\n- monitoring\n")
			got, want := comparable(t, rendered), comparable(t, built)
			delete(want, "Namespace /gitfleet")         // "helm install --create-namespace" creates it
			delete(want, "Namespace /gitfleet-members") // these have to exist, as docs/install.md says
			delete(want, "Namespace /gitfleet-lease")
			if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, slices.Sorted(maps.Keys(want))) {
				t.Errorf("the chart has\n%v\nand the kustomization\n%v", names, slices.Sorted(maps.Keys(want)))
			}
			for name := range want {
				if !reflect.DeepEqual(got[name], want[name]) {
					a, _ := yaml.Marshal(got[name])
					b, _ := yaml.Marshal(want[name])
					t.Errorf("%s differs; in the chart:\n%s\nin the kustomization:\n%s", name, a, b)
				}
			}
			applyDeployment(t, append(namespacesOf(t, dir), rendered...))
		})
	}
}

// comparable returns objects by kind, namespace and name, without what only Helm or only
// kustomize adds. The daemon's configuration is compared as it takes effect: the daemon's flags
// --set, which the kustomization uses, are merged into it.
func comparable(t *testing.T, objects []*unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	var config map[string]any
	var set []string
	for _, o := range objects {
		o := o.DeepCopy()
		if o.GetKind() == "ConfigMap" {
			o.SetName("gitfleet-config") // kustomize adds a hash of the content
			file, _, _ := unstructured.NestedString(o.Object, "data", "gitfleet.yaml")
			if err := yaml.Unmarshal([]byte(file), &config); err != nil {
				t.Fatal(err)
			}
			o.Object["data"] = config
		}
		for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
			withoutHelm(o.Object, path...)
		}
		if o.GetKind() == "Deployment" {
			volumes, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "volumes")
			for _, v := range volumes {
				if config, ok := v.(map[string]any)["configMap"].(map[string]any); ok {
					config["name"] = "gitfleet-config"
				}
			}
			_ = unstructured.SetNestedSlice(o.Object, volumes, "spec", "template", "spec", "volumes")
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			set = removeSetFlags(t, containers[0].(map[string]any))
			_ = unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
		}
		unstructured.RemoveNestedField(o.Object, "spec", "jobLabel") // kustomize: the name of the Service
		out[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o.Object
	}
	for _, setting := range set {
		key, value, _ := strings.Cut(setting, "=")
		if err := unstructured.SetNestedField(config, value, strings.Split(key, ".")...); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// removeSetFlags removes the flags --set from the arguments of a container, and returns their values.
func removeSetFlags(t *testing.T, container map[string]any) (set []string) {
	t.Helper()
	args, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		t.Fatal(err)
	}
	for i := slices.Index(args, "--set"); i >= 0; i = slices.Index(args, "--set") {
		set = append(set, args[i+1])
		args = slices.Delete(args, i, i+2)
	}
	_ = unstructured.SetNestedStringSlice(container, args, "args")
	return set
}

// withoutHelm removes Helm's conventional labels, the label app where no selector needs it, and
// the annotation that restarts the pod.
func withoutHelm(o map[string]any, path ...string) {
	labels, _, _ := unstructured.NestedStringMap(o, append(path, "labels")...)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return strings.HasPrefix(key, "app.kubernetes.io/") || key == "helm.sh/chart" || key == "app"
	})
	unstructured.RemoveNestedField(o, append(path, "labels")...)
	if len(labels) > 0 {
		_ = unstructured.SetNestedStringMap(o, labels, append(path, "labels")...)
	}
	unstructured.RemoveNestedField(o, append(path, "annotations", "checksum/config")...)
}

// Invalid values are refused before anything is installed, with their path.
func TestChartRefusesBadValues(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ values, says string }{
		"no repository":         {"{}", "at '/config/source/url'"},
		"misspelled value":      {chartValues + "replica: 2\n", "'replica'"},
		"no replica":            {chartValues + "replicas: 0\n", "at '/replicas'"},
		"one claim for two":     {replicaValues + "persistence: {existingClaim: mine}\n", "persistence.existingClaim: each replica"},
		"no namespace of Lease": {chartValues + "replicas: 2\n", "config.highAvailability.lease.namespace: name the namespace"},
		"misspelled setting":    {chartValues + "  limits: {filse: 3}\n", "at '/config/limits'"},
		"number of a setting":   {chartValues + "  limits: {files: many}\n", "at '/config/limits/files'"},
		"quantity":              {chartValues + "persistence: {size: large}\n", "at '/persistence/size'"},
		"port":                  {chartValues + "networkPolicy: {egressPorts: [70000]}\n", "at '/networkPolicy/egressPorts/0'"},
		"no certificate":        {chartValues + "secrets: {tls: \"\"}\n", "at '/secrets/tls'"},
		"no members":            {bareValues, "config.members.secretNamespace: name the namespace"},
		"no digest":             {"image: {digest: latest}\nconfig: {source: {url: x}, members: {secretNamespace: x}}\n", "at '/image/digest'"},
		"interval of Monitor":   {chartValues + "serviceMonitor: {interval: 15}\n", "at '/serviceMonitor/interval'"},
		"access mode of claims": {chartValues + "persistence: {accessModes: [ReadOnlyMany]}\n", "at '/persistence/accessModes/0'"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := template(t, test.values)
			if err == nil || !strings.Contains(out, test.says) {
				t.Errorf("%q is missing in\n%s", test.says, out)
			}
		})
	}
}

// All values have their effect on the objects, helm lint finds no problem, and a real API
// server accepts the objects.
func TestChartValues(t *testing.T) {
	const values = `
image: {repository: registry.example/team/gitfleet, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
config:
  source: {url: "ssh://git@git.example.com/org/fleet", sshKeyFile: /etc/gitfleet/ssh/key, sshKnownHosts: /etc/gitfleet/ssh/known_hosts}
  members: {probeInterval: 5s, secretNamespace: gitfleet}
secrets: {git: ""}
extraVolumes: [{name: ssh, secret: {secretName: deploy-key}}]
extraVolumeMounts: [{name: ssh, mountPath: /etc/gitfleet/ssh, readOnly: true}]
env: [{name: HTTPS_PROXY, value: "http://proxy.example.com:3128"}]
persistence: {existingClaim: mine}
networkPolicy: {egressPorts: [7999], extraEgress: [{to: [{ipBlock: {cidr: 192.0.2.0/24}}]}]}
resources: {limits: {memory: 4Gi, cpu: 2}}
podDisruptionBudget: {enabled: true}
nodeSelector: {disk: ssd}
`
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := helm(t, "lint", "--strict", chart, "--values", file); err != nil {
		t.Error(out)
	}
	text, err := template(t, values)
	if err != nil {
		t.Fatal(text)
	}
	for _, want := range []string{
		"image: registry.example/team/gitfleet@sha256:0123", "sshKnownHosts: /etc/gitfleet/ssh/known_hosts", "probeInterval: 5s", "secretNamespace: gitfleet",
		"secretName: deploy-key", "name: HTTPS_PROXY", "claimName: mine", "port: 7999", "cidr: 192.0.2.0/24", "memory: 4Gi", "disk: ssd",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for _, unwanted := range []string{"tokenFile", "gitfleet-git", "kind: PersistentVolumeClaim", "port: 6443", "kind: ServiceMonitor"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q is in\n%s", unwanted, text)
		}
	}
	applyDeployment(t, append(namespacesOf(t, "kubernetes"), readObjects(t, text)...))
	text, err = template(t, chartValues+"persistence: {annotations: {helm.sh/resource-policy: keep}}\n")
	if err != nil || !strings.Contains(text, "helm.sh/resource-policy: keep") {
		t.Errorf("the claim has no annotation: %v\n%s", err, text)
	}
}

// The Lease of the configuration is the one that the chart's Role permits, also for a single
// replica, unless it is in another cluster; an affinity in the values replaces that of the
// chart.
func TestChartValuesForReplicas(t *testing.T) {
	t.Parallel()
	const lease, role = "  highAvailability: {lease: {name: fleet-a, namespace: leases}}\n", "name: gitfleet-leader\n  namespace: leases\n"
	for name, test := range map[string]struct {
		values         string
		want, unwanted []string
	}{
		"one replica":       {chartValues, []string{"type: Recreate", "claimName: gitfleet-state"}, []string{"highAvailability", "gitfleet-leader", "podAntiAffinity"}},
		"own namespace":     {chartValues, []string{"secretNamespace: gitfleet-members", "name: gitfleet-members\n  namespace: gitfleet-members\n"}, []string{"name: gitfleet-members\n  namespace: gitfleet\n"}},
		"Secrets elsewhere": {bareValues + "  members: {secretNamespace: fleet}\n", []string{"secretNamespace: fleet", "name: gitfleet-members\n  namespace: fleet\n"}, []string{"namespace: gitfleet-members"}},
		"no Secrets":        {bareValues + "  members: {kubeconfigDir: /members}\n", []string{"kubeconfigDir: /members"}, []string{"name: gitfleet-members"}},
		"own Lease":         {chartValues + lease, []string{role, "resourceNames: [\"fleet-a\"]", "emptyDir: {sizeLimit: 10Gi}", "replicas: 1"}, []string{"type: Recreate", "kind: PersistentVolumeClaim"}},
		"Lease elsewhere":   {chartValues + "  highAvailability: {kubeconfig: /etc/gitfleet/ha/kubeconfig, lease: {namespace: fleet}}\nreplicas: 3\n", []string{"replicas: 3", "name: gitfleet\n        namespace: fleet\n"}, []string{"gitfleet-leader"}},
		"size":              {replicaValues + "persistence: {enabled: false, size: 30Gi}\n", []string{"emptyDir: {sizeLimit: 30Gi}"}, nil},
		"other scheduling":  {replicaValues + "affinity: {nodeAffinity: {}}\ntopologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]\n", []string{"nodeAffinity", "topologyKey: zone"}, []string{"podAntiAffinity"}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := template(t, test.values)
			if err != nil {
				t.Fatal(text)
			}
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in\n%s", want, text)
				}
			}
			for _, unwanted := range test.unwanted {
				if strings.Contains(text, unwanted) {
					t.Errorf("%q is in\n%s", unwanted, text)
				}
			}
		})
	}
}

// Helm refuses to give a running daemon another kind of ledger: it would lose its ledger, or
// run beside a replica. A daemon that was scaled to 0 is upgraded.
func TestChartKeepsTheLedger(t *testing.T) {
	t.Parallel()
	const (
		lease    = "  highAvailability: {lease: {name: gitfleet, namespace: leases}}\n"
		replicas = lease + "replicas: 2\n"

		alone, shared, moved = "a daemon without a Lease is running", "its replicas share a ledger", "its replicas have another Lease"
	)
	for name, test := range map[string]struct {
		strategy string
		running  int
		lease    string // its namespace; empty if there is none
		values   string
		refusal  string // empty if there is none
	}{
		"a Lease for a daemon that runs":         {"Recreate", 1, "", replicas, alone},
		"a Lease for a daemon that is stopped":   {"Recreate", 0, "", replicas, ""},
		"a daemon that stays alone":              {"Recreate", 1, "", "", ""},
		"no Lease for replicas that run":         {"RollingUpdate", 2, "leases", "", shared},
		"no Lease for replicas that are stopped": {"RollingUpdate", 0, "leases", "", ""},
		"fewer replicas that keep their Lease":   {"RollingUpdate", 2, "leases", lease, ""},
		"more replicas":                          {"RollingUpdate", 2, "leases", lease + "replicas: 3\n", ""},
		"another Lease for replicas that run":    {"RollingUpdate", 2, "others", replicas, moved},
		"another Lease for stopped replicas":     {"RollingUpdate", 0, "others", replicas, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := simulated.New(simulated.Options{}).Cluster("management")
			server := httptest.NewServer(cluster)
			defer server.Close()
			create := func(path, object string) {
				resp, err := http.Post(server.URL+path, "application/yaml", strings.NewReader(object))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if resp.StatusCode != http.StatusCreated {
					t.Fatal(resp.Status)
				}
			}
			create("/apis/apps/v1/namespaces/default/deployments", fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: gitfleet, namespace: default, labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: gitfleet, meta.helm.sh/release-namespace: default}}\nspec: {replicas: %d, strategy: {type: %s}}\n", test.running, test.strategy))
			if test.lease != "" {
				create("/api/v1/namespaces", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+test.lease+"}\n")
				create("/apis/coordination.k8s.io/v1/namespaces/"+test.lease+"/leases", "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: gitfleet, namespace: "+test.lease+"}\n")
			}
			dir := t.TempDir()
			values := filepath.Join(dir, "values.yaml")
			if err := os.WriteFile(values, []byte(chartValues+test.values), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := helm(t, "template", "gitfleet", chart, "--namespace", "default", "--values", values, "--dry-run=server", "--disable-openapi-validation", "--kube-apiserver", server.URL)
			if (err == nil) != (test.refusal == "") || !strings.Contains(out, test.refusal) {
				t.Errorf("%v, want %q in\n%s", err, test.refusal, out)
			}
		})
	}
}

// namespacesOf returns the Namespaces of a kustomization, which the chart does not have.
func namespacesOf(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	return slices.DeleteFunc(buildKustomization(t, dir, ""), func(o *unstructured.Unstructured) bool { return o.GetKind() != "Namespace" })
}
