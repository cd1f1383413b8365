package e2e

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/fleet"
)

var (
	soak     = flag.Duration("soak", 0, "change labels in the popular repositories for that long")
	interval = flag.Duration("soak-interval", 20*time.Second, "time between two commits of a soak")
)

// atOnce updates all clusters at once, without the minute that a rollout waits for
// objects without a health check.
const atOnce = "  strategy: {rollingUpdate: {maxUnavailable: 100%, unavailablePeriodSeconds: 0}}\n"

// podinfo returns files shaped like the podinfo repository: a base with an
// autoscaler and ports that sort differently as numbers and as text, and an overlay
// that sets a label on everything, pod templates included.
func podinfo(round int) map[string]string {
	return map[string]string{
		"podinfo/base/kustomization.yaml": "resources: [namespace.yaml, deployment.yaml, service.yaml, hpa.yaml, ingress.yaml]\n",
		"podinfo/base/namespace.yaml":     yamlNamespace("podinfo"),
		"podinfo/base/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: podinfo, namespace: podinfo}
spec:
  minReadySeconds: 1
  revisionHistoryLimit: 5
  progressDeadlineSeconds: 60
  strategy: {rollingUpdate: {maxUnavailable: 0}, type: RollingUpdate}
  selector: {matchLabels: {app: podinfo}}
  template:
    metadata:
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9797"}
      labels: {app: podinfo}
    spec:
      containers:
      - name: podinfod
        image: registry.example/podinfo:6.9.2
        imagePullPolicy: IfNotPresent
        ports:
        - {name: http, containerPort: 9898, protocol: TCP}
        - {name: http-metrics, containerPort: 9797, protocol: TCP}
        - {name: grpc, containerPort: 9999, protocol: TCP}
        - {name: low, containerPort: 99, protocol: TCP}
        command: [./podinfo, --port=9898, --port-metrics=9797, --grpc-port=9999, --level=info]
        env: [{name: PODINFO_UI_COLOR, value: "#34577c"}]
        livenessProbe: {exec: {command: [podcli, check, http, localhost:9898/healthz]}, initialDelaySeconds: 5, timeoutSeconds: 5}
        readinessProbe: {exec: {command: [podcli, check, http, localhost:9898/readyz]}, initialDelaySeconds: 5, timeoutSeconds: 5}
        resources: {limits: {cpu: 2000m, memory: 512Mi}, requests: {cpu: 100m, memory: 64Mi}}
`,
		"podinfo/base/service.yaml": `apiVersion: v1
kind: Service
metadata: {name: podinfo, namespace: podinfo}
spec:
  type: ClusterIP
  selector: {app: podinfo}
  ports:
  - {name: http, port: 9898, protocol: TCP, targetPort: http}
  - {name: https, port: 443, protocol: TCP, targetPort: http}
  - {name: plain, port: 80, protocol: TCP, targetPort: http}
  - {name: grpc, port: 9999, protocol: TCP, targetPort: grpc}
`,
		"podinfo/base/hpa.yaml": `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: podinfo, namespace: podinfo}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: podinfo}
  minReplicas: 2
  maxReplicas: 4
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 99}}}
`,
		"podinfo/base/ingress.yaml": `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: podinfo, namespace: podinfo}
spec:
  rules:
  - host: podinfo.example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: podinfo, port: {number: 9898}}}}
      - {path: /grpc, pathType: Prefix, backend: {service: {name: podinfo, port: {name: grpc}}}}
`,
		"podinfo/production/kustomization.yaml": fmt.Sprintf(`resources: [../base]
labels:
- pairs: {example.com/round: "%d"}
  includeTemplates: true
`, round),
		"placements/podinfo.yaml": yamlPlacement("podinfo", "podinfo", pickAll+atOnce),
	}
}

// monitoringKind defines a kind of the group monitoring.coreos.com whose ports are
// keyed by number and protocol.
func monitoringKind(kind, plural string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[2]s.monitoring.coreos.com
  labels: {app: monitoring}
spec:
  group: monitoring.coreos.com
  names: {kind: %[1]s, listKind: %[1]sList, plural: %[2]s, singular: %[3]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [port, protocol]
                items:
                  type: object
                  required: [port, protocol]
                  properties: {port: {type: integer}, protocol: {type: string}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources: {status: {}}
---
`, kind, plural, strings.ToLower(kind))
}

// kubePrometheus returns files shaped like the kube-prometheus repository: definitions
// and their objects in one commit, exporters with ports such as 9115 and 19115,
// dashboards of a megabyte, RBAC across namespaces.
func kubePrometheus(round int) map[string]string {
	var definitions, objects strings.Builder
	for kind, plural := range map[string]string{
		"Prometheus": "prometheuses", "Alertmanager": "alertmanagers", "ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules",
	} {
		definitions.WriteString(monitoringKind(kind, plural))
		fmt.Fprintf(&objects, `apiVersion: monitoring.coreos.com/v1
kind: %s
metadata: {name: k8s, namespace: monitoring}
spec:
  replicas: 2
  ports: [{port: 9090, protocol: TCP}, {port: 443, protocol: TCP}, {port: 80, protocol: UDP}, {port: 80, protocol: TCP}, {port: 19115, protocol: TCP}]
  endpoints: [{port: web, interval: 30s}, {port: reloader-web, interval: 30s}]
---
`, kind)
	}
	for name, ports := range map[string][]int{
		"prometheus-k8s": {9090, 8080}, "alertmanager-main": {9093, 8080}, "blackbox-exporter": {9115, 19115},
		"kube-state-metrics": {8443, 9443}, "grafana": {80, 443, 3000}, "prometheus-adapter": {443}, "node-exporter": {9, 9100, 100},
	} {
		fmt.Fprintf(&objects, "apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: monitoring}\nspec:\n  selector: {app: %[1]s}\n  ports:\n", name)
		for _, p := range ports {
			fmt.Fprintf(&objects, "  - {name: p%d, port: %[1]d, targetPort: %[1]d}\n", p)
		}
		fmt.Fprintf(&objects, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: monitoring}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      serviceAccountName: monitoring
      automountServiceAccountToken: true
      containers:
      - name: main
        image: registry.example/%[1]s:1
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true}
        ports:
`, name)
		for _, p := range ports {
			fmt.Fprintf(&objects, "        - {name: p%d, containerPort: %[1]d}\n", p)
		}
		objects.WriteString("---\n")
	}
	objects.WriteString(`apiVersion: v1
kind: ServiceAccount
metadata: {name: monitoring, namespace: monitoring}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: prometheus-k8s, namespace: monitoring}
rules: [{apiGroups: [""], resources: [services, endpoints, pods], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: prometheus-k8s, namespace: monitoring}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: prometheus-k8s}
subjects: [{kind: ServiceAccount, name: monitoring, namespace: monitoring}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: prometheus-k8s, labels: {app: monitoring}}
rules:
- {apiGroups: [""], resources: [nodes/metrics], verbs: [get]}
- {nonResourceURLs: [/metrics, /metrics/slis], verbs: [get]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: blackbox-exporter, namespace: monitoring}
spec:
  podSelector: {matchLabels: {app: blackbox-exporter}}
  policyTypes: [Egress, Ingress]
  egress: [{}]
  ingress:
  - from: [{podSelector: {matchLabels: {app: prometheus-k8s}}}]
    ports: [{port: 9115, protocol: TCP}, {port: 19115, protocol: TCP}]
`)
	var dashboards strings.Builder // under the megabyte that a ConfigMap may have
	dashboards.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: grafana-dashboards, namespace: monitoring}\ndata:\n")
	for i := range 40 {
		fmt.Fprintf(&dashboards, "  dashboard-%d.json: |-\n", i)
		for j := range 250 {
			fmt.Fprintf(&dashboards, "    {\"title\": \"panel %d\", \"expr\": \"sum(rate(node_cpu_seconds_total{mode!=\\\"idle\\\"}[5m])) by (instance)\"},\n", j)
		}
	}
	return map[string]string{
		"monitoring/definitions.yaml": strings.TrimSuffix(definitions.String(), "---\n"),
		"monitoring/namespace.yaml":   yamlNamespace("monitoring"),
		"monitoring/objects.yaml":     objects.String(),
		"monitoring/dashboards.yaml":  dashboards.String(),
		"monitoring/kustomization.yaml": fmt.Sprintf(`resources: [definitions.yaml, namespace.yaml, objects.yaml, dashboards.yaml]
labels:
- pairs: {example.com/round: "%d"}
`, round),
		"placements/monitoring.yaml": `apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: monitoring}
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: monitoring}
  - {group: apiextensions.k8s.io, version: v1, kind: CustomResourceDefinition, labelSelector: {matchLabels: {app: monitoring}}}
  - {group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: prometheus-k8s}
` + pickAll + atOnce,
	}
}

// Repositories as they are common among users are applied, and no drift is reported that nobody
// caused: after several changes of labels, with controllers at work on the clusters, and after
// a restart. An edit by somebody is still detected.
func TestPopularRepositoriesDoNotDrift(t *testing.T) {
	t.Parallel()
	f := workloadFleet(t, fleet.Options{Clusters: 2})
	d := newDaemonOn(t, f)
	if *soak > 0 {
		d.timeout = 10 * time.Minute // the machine may be busy
	}
	for _, client := range d.clients {
		startKubelet(t, client)
	}
	round := 0
	commit := func() *status.Report {
		t.Helper()
		round++
		files := podinfo(round)
		for name, text := range kubePrometheus(round) {
			files[name] = text
		}
		hash := d.repo.Commit(t, "main", files)
		r := d.until("available", func(r *status.Report) bool {
			for _, p := range r.Placements {
				if conditionStatus(p.Status.Conditions, api.PlacementPrefix+api.Available) != metav1.ConditionTrue {
					return false
				}
			}
			return r.Source.InForce.Hash == hash && len(r.Placements) == 2
		})
		for _, p := range r.Placements {
			for _, c := range p.Status.PlacementStatuses {
				if len(c.DriftedPlacements)+len(c.DiffedPlacements)+len(c.FailedPlacements) > 0 {
					t.Errorf("round %d: crp/%s on %s: %+v", round, p.Name, c.ClusterName, c)
				}
			}
		}
		return r
	}
	repairs := func() (lines []string) {
		t.Helper()
		text, err := os.ReadFile(d.log.Name())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "put back") || strings.Contains(line, "changes what is applied") || strings.Contains(line, "not applied") && *soak == 0 {
				lines = append(lines, line)
			}
		}
		return lines
	}

	d.start()
	for range 3 {
		commit()
	}
	for end := time.Now().Add(*soak); time.Now().Before(end); time.Sleep(*interval) {
		commit()
		if round%30 == 0 {
			d.stop()
			d.start()
		}
	}
	d.stop()
	d.start()
	commit()
	if out, code := d.cli("diff", "--config", d.config(), "--server-side"); code != 0 {
		t.Errorf("after %d rounds the API servers say that objects differ: exit code %d\n%s", round, code, out)
	}
	if got := repairs(); len(got) > 0 {
		t.Errorf("after %d rounds, drift that nobody caused:\n%s", round, strings.Join(got, ""))
	}
	for name, client := range d.clients {
		_, err := client.AppsV1().Deployments("podinfo").Patch(t.Context(), "podinfo", types.StrategicMergePatchType,
			[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"registry.example/podinfo:tampered"}]}}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	d.eventually("restored", func() bool { return len(repairs()) == len(d.clients) })
	t.Logf("%d commits", round)
}
