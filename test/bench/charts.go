package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// The fleet with charts: so many charts for so many clusters, each of a size that is usual for an operator.
const (
	chartCount       = 50
	chartMembers     = 4
	chartObjects     = 40
	chartDefinitions = 6
	chartTextLines   = 600
	// definitionSections are the parts of the schema of a definition, of which definitionShapes differ, as embedded parts of Pods are
	// repeated in those of an operator.
	definitionSections = 40
	definitionShapes   = 8
)

// charts measures the memory that the built binary needs to load many charts for clusters of which it has no credentials: what
// applying takes depends on the clusters.
func charts(ctx context.Context, b *runner) (_ map[string]float64, err error) {
	content := map[string]string{}
	for i := range chartMembers {
		name := fmt.Sprintf("member-%04d", i)
		content["fleet/"+name+".yaml"] = "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\nmetadata:\n  name: " + name + "\n"
	}
	for i := range chartCount {
		addChart(content, fmt.Sprintf("app-%02d", i))
	}
	d, err := b.newDaemon(ctx, "", "charts", content)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.start(); err != nil {
		return nil, err
	}
	return d.memoryUntilLoaded(ctx)
}

// memoryUntilLoaded measures the memory until the commit is in force and what was needed for loading it is released.
func (d *daemon) memoryUntilLoaded(ctx context.Context) (map[string]float64, error) {
	began, most := time.Now(), 0.0
	loaded := make(chan error, 1)
	go func() {
		loaded <- d.await(ctx, "in force", func(r *status.Report) bool { return r.Source.InForce.Hash == d.head })
	}()
	for ended := false; !ended; {
		select {
		case err := <-loaded:
			if err != nil {
				return nil, err
			}
			ended = true
		case <-time.After(50 * time.Millisecond):
		}
		if now, err := d.mebibytes(ctx); err == nil { // otherwise it is starting
			most = max(most, now)
		}
	}
	out := map[string]float64{"s": time.Since(began).Seconds(), "most MiB": most}
	if err := wait(ctx, 15*time.Second); err != nil {
		return nil, err
	}
	var err error
	out["memory MiB"], err = d.mebibytes(ctx)
	return out, err
}

// addChart adds a chart, and the placement that has it on all clusters.
func addChart(content map[string]string, name string) {
	dir := "charts/" + name + "/"
	var text strings.Builder
	for i := range chartTextLines {
		fmt.Fprintf(&text, "# Line %d says what the values of %s mean, as those of public charts do at length.\n", i, name)
	}
	content[dir+"Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\nappVersion: \"2.0\"\n"
	content[dir+"README.md"] = text.String()
	content[dir+"values.yaml"] = text.String() + "replicas: 1\nresources:\n  limits: {memory: 256Mi}\n"
	content[dir+"templates/_helpers.tpl"] = chartHelpers
	for i := range chartObjects {
		content[fmt.Sprintf("%stemplates/object-%02d.yaml", dir, i)] = strings.ReplaceAll(chartTemplates[i%len(chartTemplates)], "NUMBER", fmt.Sprint(i))
	}
	for i := range chartDefinitions {
		content[fmt.Sprintf("%scrds/definition-%d.yaml", dir, i)] = definition(name, i)
	}
	content["fleet/"+name+".yaml"] = strings.ReplaceAll(`apiVersion: gitfleet.dev/v1alpha1
kind: ClusterHelmChart
metadata: {name: NAME}
spec:
  chart: {path: charts/NAME}
  namespace: NAME
---
apiVersion: v1
kind: Namespace
metadata: {name: NAME}
---
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: NAME}
spec:
  resourceSelectors:
  - {group: gitfleet.dev, version: v1alpha1, kind: ClusterHelmChart, name: NAME}
  - {group: "", version: v1, kind: Namespace, name: NAME}
  policy: {placementType: PickAll}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 100%}
`, "NAME", name)
}

const chartHelpers = `{{- define "labels" -}}
app.kubernetes.io/name: {{ .Chart.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
`

// chartTemplates are the kinds of objects that most charts have.
var chartTemplates = []string{`apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-NUMBER
  labels: {{- include "labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {{- include "labels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "labels" . | nindent 8 }}
    spec:
      serviceAccountName: {{ .Release.Name }}-NUMBER
      containers:
      - name: {{ .Chart.Name }}
        image: "registry.example.com/web:{{ .Values.tag | default .Chart.AppVersion }}"
        args: ["--listen=:8080", "--leader-elect", "--log-level=info"]
        ports: [{name: http, containerPort: 8080}]
        {{- with .Values.resources }}
        resources: {{- toYaml . | nindent 10 }}
        {{- end }}
`, `apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}-NUMBER
  labels: {{- include "labels" . | nindent 4 }}
`, `apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}-NUMBER
  labels: {{- include "labels" . | nindent 4 }}
spec:
  selector: {{- include "labels" . | nindent 4 }}
  ports: [{name: http, port: 80, targetPort: http}]
`, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .Release.Name }}-NUMBER
  labels: {{- include "labels" . | nindent 4 }}
rules:
- {apiGroups: [""], resources: [secrets, configmaps, events], verbs: [get, list, watch, create, update, patch]}
- {apiGroups: [apps], resources: [deployments, statefulsets], verbs: [get, list, watch]}
`}

// definition returns a definition with a schema of many fields, as generators write it.
func definition(chart string, number int) string {
	name := fmt.Sprintf("kind%d", number)
	group := chart + ".example.com"
	properties := map[string]any{}
	for i := range definitionSections {
		fields := map[string]any{}
		for k := range 9 {
			fields[fmt.Sprintf("field%d", k)] = map[string]any{
				"description": fmt.Sprintf("Field %d of part %d of %s says how the operator of %s treats the object.\nIf it is not set, the default of the operator counts, as its documentation has it.", k, i%definitionShapes, name, chart),
				"type":        "string",
			}
		}
		properties[fmt.Sprintf("section%d", i)] = map[string]any{
			"description": "A part of the configuration, which is optional.", "type": "object", "properties": fields, "required": []any{"field0"},
		}
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": name + "s." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": "Kind" + fmt.Sprint(number), "listKind": fmt.Sprintf("Kind%dList", number), "plural": name + "s", "singular": name},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}},
				}},
			}},
		},
	})
	if err != nil {
		panic("bench: " + err.Error()) // strings and maps can always be encoded
	}
	return string(text)
}
