package chart

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gitfleet/gitfleet/test/checkout"
)

// publicPatterns are charts that have what public ones have.
var publicPatterns = map[string]map[string]string{
	"definitions, hooks and a lookup that is guarded": {
		"crds/widgets.yaml":     "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: widgets.example.com\n",
		"templates/secret.yaml": "{{- $existing := lookup \"v1\" \"Secret\" .Release.Namespace \"db\" }}\napiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  password: {{ if $existing }}{{ $existing.data.password }}{{ else }}{{ .Values.password | required \"write password\" | b64enc }}{{ end }}\n",
		"values.yaml":           "password: hunter2\n",
		"templates/job.yaml":    "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{ .Release.Name }}-migrate\n  annotations:\n    helm.sh/hook: pre-install,pre-upgrade\n    helm.sh/hook-weight: \"-5\"\n    helm.sh/hook-delete-policy: before-hook-creation\nspec:\n  template:\n    spec: {restartPolicy: Never}\n",
		"templates/test.yaml":   "apiVersion: v1\nkind: Pod\nmetadata:\n  name: test\n  annotations: {helm.sh/hook: test}\n",
	},
	"images with a global registry": {
		"Chart.yaml":               metadata + "dependencies:\n- {name: common, version: 1.x.x}\n- {name: redis, version: 1.x.x, condition: redis.enabled}\n",
		"values.yaml":              "global: {imageRegistry: registry.example.com, imagePullSecrets: [pull]}\nimage: {repository: shop/web, tag: \"1.2\", pullSecrets: [other, pull]}\nredis: {enabled: true}\ncommonLabels: {team: \"{{ .Release.Name }}\"}\n",
		"charts/common/Chart.yaml": "apiVersion: v2\nname: common\nversion: 1.0.0\ntype: library\n",
		"charts/common/templates/_images.tpl": `{{- define "common.image" -}}
{{- $registry := .image.registry | default ((.global).imageRegistry) -}}
{{- if $registry }}{{ printf "%s/%s:%s" $registry .image.repository (.image.tag | toString) }}{{ else }}{{ printf "%s:%s" .image.repository (.image.tag | toString) }}{{ end -}}
{{- end -}}
{{- define "common.pullSecrets" -}}
{{- $all := list }}{{- range (.global).imagePullSecrets }}{{ $all = append $all . }}{{ end }}{{- range .image.pullSecrets }}{{ $all = append $all . }}{{ end }}
{{- range ($all | uniq) }}
- name: {{ . }}
{{- end }}
{{- end -}}
{{- define "common.render" -}}
{{- $value := typeIs "string" .value | ternary .value (.value | toYaml) }}
{{- if contains "{{" (toJson .value) }}{{ tpl $value .context }}{{ else }}{{ $value }}{{ end }}
{{- end -}}`,
		"templates/pod.yaml":             "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  labels: {{- include \"common.render\" (dict \"value\" .Values.commonLabels \"context\" $) | nindent 4 }}\nspec:\n  imagePullSecrets: {{- include \"common.pullSecrets\" (dict \"image\" .Values.image \"global\" .Values.global) | nindent 2 }}\n  containers:\n  - name: web\n    image: {{ include \"common.image\" (dict \"image\" .Values.image \"global\" .Values.global) }}\n",
		"charts/redis/Chart.yaml":        "apiVersion: v2\nname: redis\nversion: 1.1.0\n",
		"charts/redis/values.yaml":       "image: {repository: redis, tag: 7}\n",
		"charts/redis/templates/pod.yml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}-redis\nspec:\n  containers:\n  - name: redis\n    image: {{ include \"common.image\" (dict \"image\" .Values.image \"global\" .Values.global) }}\n",
	},
	"an Ingress that depends on what the cluster serves": {
		"values.yaml": "hosts:\n- {host: a.example.com, paths: [{path: /}, {path: /api, pathType: Exact}]}\nannotations: {}\ntls: true\n",
		"templates/ingress.yaml": `{{- $full := printf "%s-%s" .Release.Name .Chart.Name -}}
apiVersion: {{ if .Capabilities.APIVersions.Has "networking.k8s.io/v1/Ingress" }}networking.k8s.io/v1{{ else }}extensions/v1beta1{{ end }}
kind: Ingress
metadata:
  name: {{ $full }}
  {{- with .Values.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if .Values.tls }}
  tls:
  {{- range .Values.hosts }}
  - hosts: [{{ .host | quote }}]
    secretName: {{ $full }}-{{ .host | replace "." "-" }}
  {{- end }}
  {{- end }}
  rules:
  {{- range .Values.hosts }}
  - host: {{ .host | quote }}
    http:
      paths:
      {{- range .paths }}
      - path: {{ .path }}
        pathType: {{ .pathType | default "Prefix" }}
        backend: {service: {name: {{ $full }}, port: {number: {{ $.Values.port | default 80 }}}}}
      {{- end }}
  {{- end }}
{{- if semverCompare ">=1.21-0" .Capabilities.KubeVersion.GitVersion }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: {{ $full }}}
{{- end }}
{{- if .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: {{ $full }}}
{{- end }}
`,
	},
	"documents and blocks of text that end as the template ends": {
		"templates/text.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: |\n    {{ .Release.Name }}",
		"templates/keep.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata:\n  text: |+\n    {{ .Release.Name }}\n\n",
		"templates/joined.yaml": "{{- range tuple \"d\" \"e\" -}}\n---{{ \"\" -}}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ . }}}\n{{ end }}",
	},
	"configuration from files": {
		"config/app.ini":      "[a]\nb = {{ .Values.level }}\n",
		"config/more.json":    "{\"a\": 1}\n",
		"values.yaml":         "level: debug\nextra:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: \"{{ .Release.Name }}-extra\"}\n",
		"templates/cm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: files}\ndata:\n{{ tpl (.Files.Glob \"config/*\").AsConfig . | indent 2 }}\n",
		"templates/list.yaml": "{{- range .Values.extra }}\n---\n{{ tpl (toYaml .) $ }}\n{{- end }}\n",
	},
}

// notYAML are the charts whose output is text, of which Helm's engine writes the same.
var notYAML = map[string]bool{"loops, variables and functions": true, "tpl, files and capabilities": true}

// The objects of charts are those of helm template. The program is that which the end-to-end tests build.
func TestObjectsAreThoseOfHelm(t *testing.T) {
	helm, built, err := checkout.BuiltHelm()
	if err != nil {
		t.Fatal(err)
	}
	if !built {
		t.Skip("make builds Helm for the end-to-end tests")
	}
	all := maps.Clone(charts)
	maps.Copy(all, publicPatterns)
	maps.DeleteFunc(all, func(name string, _ map[string]string) bool { return notYAML[name] })
	for name, files := range all {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				path := filepath.Join(dir, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			write(FileName, metadata)
			for name, text := range files {
				write(name, text)
			}
			command := exec.CommandContext(t.Context(), helm, "template", usual.Release, dir, "--namespace", usual.Namespace, "--kube-version", usual.KubeVersion, "--include-crds")
			var stderr bytes.Buffer
			command.Stderr = &stderr
			text, err := command.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, stderr.String())
			}
			outputs, err := readChart(t, files).Render(usual)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range outputs {
				got = append(got, documentsOf(t, o.Text)...)
			}
			want := documentsOf(t, text)
			slices.Sort(got)
			slices.Sort(want)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%s\nand Helm has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// documentsOf returns the documents of a text as JSON.
func documentsOf(t *testing.T, text []byte) (all []string) {
	t.Helper()
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := yaml.ToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		if string(data) != "null" {
			all = append(all, string(data))
		}
	}
}
