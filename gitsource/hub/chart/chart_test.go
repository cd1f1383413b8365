package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	helmengine "helm.sh/helm/v4/pkg/engine"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

const metadata = "apiVersion: v2\nname: web\nversion: 1.0.0\nappVersion: \"2.5\"\n"

// readChart returns the chart in the directory web with some files, and Chart.yaml unless it is among them.
func readChart(t *testing.T, files map[string]string) *Chart {
	t.Helper()
	fsys := fstest.MapFS{"web/Chart.yaml": {Data: []byte(metadata)}}
	for name, text := range files {
		file := &fstest.MapFile{Data: []byte(text)}
		if to, is := strings.CutPrefix(text, "link to "); is {
			file = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink}
		}
		fsys[path.Join("web", name)] = file
	}
	limits := limit.Limits{}.WithDefaults()
	c, err := Read(tree.New(fsys, limits.FileSize), "web", limits)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var usual = Inputs{Release: "shop", Namespace: "apps", KubeVersion: "1.37.0"}

// charts are written after the patterns of public ones.
var charts = map[string]map[string]string{
	"names, labels and a checksum": {
		"values.yaml": "replicas: 2\nimage: {repository: nginx, tag: \"\"}\npodAnnotations: {a: b, port: 8080, big: 1234567}\nresources: {limits: {cpu: 100m}}\n",
		"templates/_helpers.tpl": `{{- define "web.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 }}{{ end }}
{{- end }}
{{- define "web.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}`,
		"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include \"web.fullname\" . }}\ndata:\n  a: {{ .Values.podAnnotations.big | quote }}\n",
		"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "web.fullname" . }}
  labels:
    {{- include "web.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  template:
    metadata:
      annotations:
        checksum/config: {{ include (print $.Template.BasePath "/config.yaml") . | sha256sum }}
        {{- with .Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      containers:
      - name: {{ .Chart.Name }}
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        {{- if .Values.missing }}
        never: true
        {{- else if eq (int .Values.replicas) 2 }}
        resources: {{- toYaml .Values.resources | nindent 10 }}
        {{- end }}
        empty: {{ .Values.nothing }}
`,
		"templates/NOTES.txt": "Thank you for {{ .Chart.Name }}",
	},
	"subcharts, conditions, tags, aliases, imports and global values": {
		"Chart.yaml":                        metadata + "dependencies:\n- {name: db, version: 1.x.x, condition: db.enabled}\n- {name: db, version: 1.x.x, alias: second, tags: [more]}\n- {name: cache, version: 1.x.x, condition: cache.enabled, import-values: [{child: exports, parent: imported}]}\n",
		"values.yaml":                       "global: {region: eu, nested: {a: 1}}\ndb: {enabled: true, size: 3}\nsecond: {size: 7}\ntags: {more: true}\ncache: {enabled: true}\n",
		"templates/a.yaml":                  "a: {{ .Values.global.region }} {{ .Values.imported | toJson }} {{ .Values.db.size }} {{ .Subcharts.db.Values.size }}\n",
		"charts/db/Chart.yaml":              "apiVersion: v2\nname: db\nversion: 1.2.3\n",
		"charts/db/values.yaml":             "size: 1\nname: db\nglobal: {nested: {b: 2}}\n",
		"charts/db/templates/db.yaml":       "name: {{ .Values.name }}-{{ .Values.size }}\nregion: {{ .Values.global.region }}\nall: {{ .Values.global | toJson }}\nroot: {{ .Chart.IsRoot }}\ntemplate: {{ .Template.Name }}\n",
		"charts/cache/Chart.yaml":           "apiVersion: v2\nname: cache\nversion: 1.0.0\n",
		"charts/cache/values.yaml":          "exports: {port: 6379}\nenabled: false\n",
		"charts/cache/templates/cache.yaml": "port: {{ .Values.exports.port }}\n",
	},
	"a library chart and templates that override each other": {
		"Chart.yaml":               metadata + "dependencies:\n- {name: common, version: 1.x.x}\n",
		"charts/common/Chart.yaml": "apiVersion: v2\nname: common\nversion: 1.0.0\ntype: library\n",
		"charts/common/templates/_util.tpl": `{{- define "common.merge" -}}{{ $over := fromYaml (include (index . 1) (index . 0)) }}{{ $base := fromYaml (include (index . 2) (index . 0)) }}{{ toYaml (merge $over $base) }}{{ end }}
{{- define "common.base" -}}
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {type: ClusterIP}
{{- end }}`,
		"charts/common/templates/not.yaml": "never: rendered",
		"templates/service.yaml": `{{- define "web.service" }}
spec: {type: {{ .Values.type | default "LoadBalancer" }}}
{{- end }}
{{- template "common.merge" (list . "web.service" "common.base") }}`,
	},
	"tpl, files and capabilities": {
		"values.yaml": "text: \"{{ .Release.Name }}-{{ include \\\"inner\\\" . }}\"\nlist: [a, b]\nmap: {x: \"{{ .Values.list | join \\\",\\\" }}\"}\n",
		"conf/a.ini":  "a=1\nb=2\n", "conf/b.ini": "c=3", "other.txt": "hello {{ .Release.Namespace }}",
		"templates/_inner.tpl":        `{{ define "inner" }}in{{ end }}`,
		"templates/tpl.yaml":          "text: {{ tpl .Values.text . }}\nmap: {{ tpl (.Values.map | toYaml) . | nindent 2 }}\nfile: {{ tpl (.Files.Get \"other.txt\") . }}\n{{ tpl \"{{ define \\\"x\\\" }}y{{ end }}{{ include \\\"x\\\" . }}\" . }}\n",
		"templates/files.yaml":        "data:\n{{ (.Files.Glob \"conf/*.ini\").AsConfig | indent 2 }}\nsecret:\n{{ (.Files.Glob \"conf/**\").AsSecrets | indent 2 }}\n{{ range $path, $_ := .Files.Glob \"conf/*\" }}{{ $path }}: {{ $.Files.Get $path | b64enc }}\n{{ end }}{{ range .Files.Lines \"conf/a.ini\" }}- {{ . }}\n{{ end }}",
		"templates/capabilities.yaml": "v: {{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.APIVersions.Has \"apps/v1\" }} {{ .Capabilities.APIVersions.Has \"x/v1\" }}\n{{ if semverCompare \">=1.30-0\" .Capabilities.KubeVersion.Version }}new{{ else }}old{{ end }}\n{{ lookup \"v1\" \"Secret\" \"a\" \"b\" | toJson }}\n",
	},
	"loops, variables and functions": {
		"values.yaml": "hosts: [{name: a, paths: [/, /b]}, {name: b, paths: []}]\nenv: {B: 2, A: x}\nn: 3\nf: 1.5\nt: true\nnull_: null\n",
		"templates/loops.yaml": `{{- range $i, $host := .Values.hosts }}
- host: {{ $host.name | quote }}
  index: {{ $i }}
  {{- range .paths }}
  - {{ . }}
  {{- else }}
  none: true
  {{- end }}
{{- end }}
{{ range $k, $v := .Values.env }}{{ $k }}={{ $v }};{{ end }}
{{ $x := 1 }}{{ range until 5 }}{{ if eq . 3 }}{{ break }}{{ end }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ $x = add $x . }}{{ end }}{{ $x }}
{{ range $i := untilStep 0 10 3 }}{{ $i }} {{ end }}{{ seq 3 }} {{ seq 2 5 }}
{{ with $y := .Values.env }}{{ $y.A }}{{ end }}
{{ $d := dict "a" 1 "b" (list 1 2 "c") }}{{ $_ := set $d "z" (dict "q" nil) }}{{ toJson $d }} {{ toPrettyJson $d }} {{ $d.b | last }} {{ dig "z" "p" "none" $d }}
{{ .Values.n }} {{ .Values.f }} {{ .Values.t }} {{ .Values.null_ }} {{ printf "%v %d %5.2f %s" .Values.n (int .Values.number) .Values.f (toString .Values.n) }}
{{ list 3 1 2 | sortAlpha | join "-" }} {{ "a,b" | splitList "," | first }} {{ (split "." "a.b")._1 }} {{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }}
{{ ternary "yes" "no" .Values.t }} {{ coalesce "" nil "c" }} {{ "abc" | repeat 2 | upper }} {{ cat "a" 1 }} {{ kindOf .Values.n }} {{ mul 2 3 }} {{ div 7 2 }} {{ max 1 5 }}
{{ toToml (dict "a" 1) }} {{ fromToml "a = 1" | toJson }} {{ fromYaml "a: [1" | toJson }} {{ fromJsonArray "[1,2]" | toJson }} {{ toYamlPretty (dict "a" (list 1)) }}
{{ durationSeconds "1m30s" }} {{ durationRoundTo "1h7m" "10m" }} {{ "x" | b64enc | b64dec }} {{ urlParse "http://a/b" | toJson }} {{ derivePassword 1 "long" "p" "u" "s" }}
{{ block "named" .Values.env }}{{ .A }}{{ end }} {{ and 1 0 }} {{ or 0 "x" }} {{ not true }} {{ len .Values.hosts }} {{ index .Values.hosts 0 "name" }} {{ slice .Values.hosts 0 1 | len }} {{ html "<" }}
`,
	},
}

// A chart is rendered as Helm's own engine renders it.
func TestRenderedAsByHelm(t *testing.T) {
	all := maps.Clone(charts)
	maps.Copy(all, publicPatterns)
	for name, files := range all {
		c := readChart(t, files)
		c.deadline = time.Now().Add(time.Minute)
		_, got, _, err := c.execute(usual, func(int) bool { return false }, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		loaded, err := c.load()
		if err != nil {
			t.Fatal(err)
		}
		values, err := c.values(loaded, usual)
		if err != nil {
			t.Fatal(err)
		}
		want, err := helmengine.Render(loaded, values)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
			t.Errorf("%s: files %v, want %v", name, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		for file, text := range want {
			if !bytes.Equal(got[file], []byte(text)) {
				t.Errorf("%s: %s is\n%s\nand Helm writes\n%s", name, file, got[file], text)
			}
		}
	}
}

// Rendering ends at limits that do not depend on the machine, and the message says where and why.
func TestRenderingIsBounded(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"nested loops":                 {"{{ range 100000 }}{{ range 100000 }}{{ range 100000 }}{{ end }}{{ end }}{{ end }}", "too many steps"},
		"nested loops over lists":      {"{{ $l := until 1000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}", "too many steps"},
		"a long text":                  {`{{ repeat 2000000000 "x" }}`, "makes more than 32 MiB"},
		"text that doubles":            {`{{ $x := "0123456789" }}{{ range 60 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`, "MiB"},
		"a list that doubles":          {`{{ $x := list 1 2 }}{{ range 60 }}{{ $x = concat $x $x }}{{ end }}`, "MiB"},
		"replacements":                 {`{{ $x := repeat 100000 "a" }}{{ replace "a" $x $x }}`, "makes more than"},
		"regular replacements":         {`{{ $x := repeat 100000 "a" }}{{ regexReplaceAll "a" $x $x }}`, "makes more than"},
		"indentation":                  {`{{ indent 1000000 (repeat 10000 "a\n") }}`, "makes more than"},
		"joined":                       {`{{ join (repeat 100000 "-") (until 10000) }}`, "makes more than"},
		"a sequence":                   {`{{ seq 1 2000000000 }}`, "makes more than"},
		"a range of numbers":           {`{{ untilStep 0 2000000000 1 }}`, "makes more than"},
		"numbers down to the least":    {`{{ until -9223372036854775808 }}`, "makes more than"},
		"numbers over all":             {`{{ untilStep -9000000000000000000 9000000000000000000 1 }}`, "makes more than"},
		"numbers down over all":        {`{{ untilStep 9000000000000000000 -9000000000000000000 -1 }}`, "makes more than"},
		"numbers that overflow":        {`{{ untilStep 9223372036854775800 9223372036854775807 5 }}`, "makes more than"},
		"a sequence to the least":      {`{{ seq -9223372036854775808 }}`, "makes more than"},
		"a sequence over all":          {`{{ seq -9000000000000000000 9000000000000000000 }}`, "makes more than"},
		"a sequence that overflows":    {`{{ seq 9223372036854775800 5 9223372036854775806 }}`, "makes more than"},
		"a long unique list":           {`{{ until 500000 | uniq }}`, "too many steps"},
		"a list without another":       {`{{ $l := until 40000 }}{{ without $l (until 40000) (until 40000) | len }}`, "too many steps"},
		"a large body":                 {`{{ range 20000 }}` + strings.Repeat("{{ $x := 1 }}", 1000) + `{{ end }}`, "too many steps"},
		"a large condition in a loop":  {`{{ range 20000 }}{{ if and ` + strings.Repeat("true ", 2000) + `}}{{ end }}{{ end }}`, "too many steps"},
		"a large template in a loop":   {`{{ define "l" }}` + strings.Repeat("{{ $x := 1 }}", 1000) + `{{ end }}{{ range 20000 }}{{ template "l" }}{{ end }}`, "too many steps"},
		"compared texts":               {`{{ $x := repeat 10000000 "x" }}{{ $y := print $x "" }}{{ range 2000 }}{{ if eq $x $y }}{{ end }}{{ end }}`, "too many steps"},
		"a compared result":            {`{{ $x := repeat 10000000 "x" }}{{ $y := print $x "" }}{{ range 2000 }}{{ if $x | lt $y }}{{ end }}{{ end }}`, "too many steps"},
		"a long pattern":               {`{{ range 20000 }}{{ $x := $.Files.Glob "` + strings.Repeat("*a", 1000) + `" }}{{ end }}`, "too many steps"},
		"patterns in a loop":           {`{{ range 12000 }}{{ $x := $.Files.Glob "*" }}{{ end }}`, "too many steps"},
		"a short pattern that is long": {`{{ $x := repeat 1000000 "ab" }}{{ regexFind "((.?){100}){9}$" $x }}`, "too many steps"},
		"patterns that are compiled":   {`{{ range 20000 }}{{ $x := regexMatch "((.?){100}){9}" "" }}{{ end }}`, "too many steps"},
		"aliases":                      {`{{ $text := printf "a: &a [%s]\nb: [%s]" (repeat 2000 "1,") (repeat 90 "*a,") }}{{ $l := list }}{{ range 100 }}{{ $l = append $l (fromYaml $text) }}{{ end }}`, "too many steps"},
		"a wide number":                {`{{ printf "%1000000d" 1 }}`, "makes more than"},
		"a width in an argument":       {`{{ printf "%[1]*d" 100000 }}`, "makes more than"},
		"a value that contains itself": {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`, "contains itself"},
		"such a value as YAML":         {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYamlPretty $d }}`, "contains itself"},
		"such a value as text":         {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ printf "%v" $d }}`, "contains itself"},
		"such a value in itself":       {`{{ $_ := set .Values "d" . }}{{ toString .Values }}`, "contains itself"},
		"a value that is shared":       {`{{ $l := list "xxxxxxxx" }}{{ range 60 }}{{ $l = list $l $l }}{{ end }}{{ toJson $l }}`, "MiB"},
		"output":                       {`{{ $x := repeat 1000000 "x" }}{{ range 1000 }}{{ $x }}{{ end }}`, "writes more than 10 MiB"},
		"literal output":               {`{{ range 1000000 }}` + strings.Repeat("x", 1000) + `{{ end }}`, "writes more than 10 MiB"},
		"recursion":                    {`{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}`, "more than 1000 times deep"},
		"recursion of templates":       {`{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}`, "more than 1000 times deep"},
		"recursion of tpl":             {`{{ $_ := set . "t" "{{ tpl .t . }}" }}{{ tpl .t . }}`, "times deep"},
		"wide recursion":               {`{{ define "r" }}{{ include "r" . }}{{ include "r" . }}{{ end }}{{ include "r" . }}`, "times deep"},
		"nested blocks":                {strings.Repeat("{{ if true }}", 100000) + strings.Repeat("{{ end }}", 100000), "nested deeper than 200"},
		"nested parentheses":           {"{{ " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + " }}", "nested deeper than 200"},
		"a chain of alternatives":      {"{{ if true }}" + strings.Repeat("{{ else if true }}", 5000) + "{{ end }}", "nested deeper than 200"},
		"lines that are kept":          {`{{ $l := list }}{{ range 100000 }}{{ $l = append $l ($.Files.Lines "lines.txt") }}{{ end }}`, "MiB"},
		"configuration that is kept":   {`{{ $l := list }}{{ range 100000 }}{{ $l = append $l $.Files.AsConfig }}{{ end }}`, "too many steps"},
	} {
		t.Run(name, func(t *testing.T) {
			c := readChart(t, map[string]string{"templates/bomb.yaml": "a: 1\n" + test.template, "lines.txt": strings.Repeat("\n", 100000)})
			if test.want == "too many steps" {
				c.steps /= 50 // the rule does not depend on the number, and the time that the test takes does
			}
			_, err := c.Render(usual)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "web/templates/bomb.yaml:") {
				t.Errorf("got %v, want an error in web/templates/bomb.yaml with %q", err, test.want)
			}
		})
	}
}

// The templates are those of the dependencies that the values enable, at each rendering.
func TestRenderedAgain(t *testing.T) {
	c := readChart(t, map[string]string{
		"Chart.yaml":              metadata + "dependencies:\n- {name: one, version: 1.x.x, condition: one.enabled}\n- {name: two, version: 1.x.x, condition: two.enabled}\n",
		"charts/one/Chart.yaml":   "apiVersion: v2\nname: one\nversion: 1.0.0\n",
		"charts/one/templates/db": "one",
		"charts/two/Chart.yaml":   "apiVersion: v2\nname: two\nversion: 1.0.0\n",
		"charts/two/templates/db": "two",
	})
	for _, which := range []string{"one", "two", "", "one"} {
		in := usual
		in.Values = []map[string]any{{"one": map[string]any{"enabled": which == "one"}, "two": map[string]any{"enabled": which == "two"}}}
		got := ""
		out, err := c.Render(in)
		for _, o := range out {
			got += strings.TrimSpace(string(o.Text))
		}
		if err != nil || got != which {
			t.Errorf("%q is rendered as %q, %v", which, got, err)
		}
	}
}

// What functions make up must not be in the output, and may be called otherwise.
func TestChance(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"a random password":                 {`x: {{ randAlphaNum 10 | b64enc }}`, "web/templates/a.yaml:1: randAlphaNum has another result each time"},
		"one that is not needed":            {`x: {{ .Values.password | default (randAlphaNum 10) }}`, ""},
		"its length":                        {`x: {{ randAlphaNum 10 | len }}`, ""},
		"one of several":                    {"x: {{ .Values.password | default (randAlpha 9) }}\ny: {{ uuidv4 }}", "web/templates/a.yaml:2: uuidv4 has another"},
		"the time":                          {`x: {{ now | unixEpoch }}`, "now has another"},
		"the time by default":               {`x: {{ date "2006" nil }}`, "date has another"},
		"a date":                            {`x: {{ toDate "2006-01-02" "2020-02-03" | date "02.01.2006" }}`, ""},
		"a certificate":                     {`{{ $ca := genCA "a" 365 }}{{ $cert := genSignedCert "b" nil nil 1 $ca }}x: {{ $cert.Cert | b64enc }}`, "has another"},
		"a hash with salt":                  {`x: {{ htpasswd "a" "b" }}`, "htpasswd has another"},
		"in an included template":           {`{{ define "p" }}{{ randNumeric 3 }}{{ end }}x: {{ include "p" . }}`, "web/templates/a.yaml:1: randNumeric"},
		"a Secret that does not exist here": {`{{ if lookup "v1" "Secret" "a" "b" }}x: 1{{ else }}x: {{ randAlpha 3 }}{{ end }}`, "randAlpha has another"},
		"a hook":                            {"a: 1\n---\nmetadata: {annotations: {helm.sh/hook: test}}\nx: {{ randAlpha 3 }}\n---\nb: 1", ""},
		"what is beside a hook":             {"a: {{ randAlpha 3 }}\n---\nmetadata: {annotations: {helm.sh/hook: test}}", "web/templates/a.yaml:1: randAlpha has another"},
		"the time zone of the machine":      {`x: {{ dateInZone "15:04" 0 "Local" }}`, ""},
		"the order of keys":                 {`x: {{ keys (dict "a" 1 "b" 2 "c" 3 "d" 4) | join "," }} {{ values (dict "a" 1 "b" 2 "c" 3) | join "," }}`, ""},
	} {
		c := readChart(t, map[string]string{"templates/a.yaml": test.template, "templates/NOTES.txt": "{{ randAlpha 9 }}", "values.yaml": "password: secret\n"})
		in := usual
		in.LeftOut = func(object map[string]any) bool { return object["metadata"] != nil }
		out, err := c.Render(in)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %+v %v, want %q", name, out, err, test.want)
		}
	}
}

// The time zone of the machine does not matter.
func TestTimeZone(t *testing.T) {
	before := time.Local
	defer func() { time.Local = before }()
	time.Local = time.FixedZone("here", 5*3600)
	c := readChart(t, map[string]string{"templates/a.yaml": `{{ toDate "2006-01-02" "1970-01-02" | unixEpoch }} {{ mustToDate "2006-01-02" "1970-01-02" | unixEpoch }} {{ dateInZone "15:04" 0 "Local" }} {{ dateInZone "15:04" 0 "Asia/Tokyo" }}`})
	out, err := c.Render(usual)
	if err != nil || string(out[0].Text) != "86400 86400 00:00 09:00\n" {
		t.Errorf("%+v %v", out, err)
	}
}

// A comparison reads its arguments without changing what it means.
func TestCompared(t *testing.T) {
	c := readChart(t, map[string]string{"values.yaml": "a: x\nnumber: 2\nm: {}\n", "templates/a.yaml": `{{ eq .Values.a "x" "y" }} {{ .Values.a | ne "x" }} {{ eq .Values.missing nil }} {{ ne .Values.m nil }} {{ eq .Values.missing .Values.m.other }} {{ lt 1 (int .Values.number) }} {{ eq (len .Values.a) 1 }} {{ ge 1.5 1.5 }} {{ eq .Values.number 2.0 }} {{ with .Values.a }}{{ eq . "x" }}{{ end }} {{ eq true true }}`})
	out, err := c.Render(usual)
	if want := "true false true true true true true true true true true\n"; err != nil || string(out[0].Text) != want {
		t.Errorf("%+v %v", out, err)
	}
}

// What is encrypted is not rendered as it is stored, wherever a template has it from.
func TestEncryptedFiles(t *testing.T) {
	const secret = "password: ENC[AES256_GCM,data:a,iv:b,tag:c,type:str]\nsops: {lastmodified: x, mac: y}\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"values":               {map[string]string{"values.yaml": secret}, "web/values.yaml: it is encrypted with SOPS"},
		"values of a subchart": {map[string]string{"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "charts/db/values.yaml": secret}, "web/charts/db/values.yaml: it is encrypted"},
		"a packed subchart":    {map[string]string{"charts/db.tgz": packed(t, 1, "values.yaml", secret)}, "web/charts/db.tgz: it is encrypted"},
		"a template":           {map[string]string{"templates/secret.yaml": secret}, "web/templates/secret.yaml: it is encrypted"},
		"a file that is read":  {map[string]string{"secret.yaml": secret, "templates/a.yaml": `a: {{ .Files.Get "secret.yaml" | b64enc }}`}, "web/templates/a.yaml:1: Get: the file secret.yaml: it is encrypted"},
		"a file as a Secret":   {map[string]string{"secret.yaml": secret, "templates/a.yaml": `a: {{ .Files.AsSecrets | nindent 2 }}`}, "web/templates/a.yaml:1: AsSecrets: the file secret.yaml: it is encrypted"},
		"lines":                {map[string]string{"secret.yaml": secret, "templates/a.yaml": `a: {{ .Files.Lines "secret.yaml" }}`}, "it is encrypted"},
		"files by a pattern":   {map[string]string{"secret.yaml": secret, "templates/a.yaml": `{{ range $name, $bytes := .Files.Glob "*.yaml" }}{{ $bytes | toString }}{{ end }}`}, "it is encrypted"},
		"a file that is not":   {map[string]string{"secret.yaml": secret, "a.txt": "a", "templates/a.yaml": `a: {{ .Files.Get "a.txt" }}{{ (.Files.Glob "*.txt").AsConfig }}`}, ""},
	} {
		_, err := readChart(t, test.files).Render(usual)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// A file that is not YAML is reported with its line and the reason, without the steps of the loader.
func TestFilesThatAreNotYAML(t *testing.T) {
	const reason = "not valid YAML: mapping values are not allowed in this context"
	for name, want := range map[string]string{"Chart.yaml": "web/Chart.yaml:2: " + reason, "values.yaml": "web/values.yaml:2: " + reason, "Chart.lock": "web/Chart.lock:2: " + reason} {
		if _, err := readChart(t, map[string]string{name: "name: web\nversion: 1: 2\n"}).Render(usual); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// A rendering that takes too long may be tried again.
func TestDeadline(t *testing.T) {
	for _, text := range []string{"{{ range 100000 }}{{ end }}", "{{ range 100000 }}{{ end }}{{ randAlpha 3 }}"} {
		c := readChart(t, map[string]string{"templates/a.yaml": text})
		c.limits.BuildTime = time.Nanosecond
		_, err := c.Render(usual)
		if fault, is := errors.AsType[*Fault](err); !is || !fault.Transient || !strings.Contains(err.Error(), "took longer than 1ns; make it smaller, or raise limits.buildTime") {
			t.Errorf("got %v", err)
		}
	}
}

// What is wrong is named with file and line, and without values.
func TestFaults(t *testing.T) {
	many := map[string]string{}
	for i := range maxFiles + 1 {
		many[fmt.Sprintf("files/%d", i)] = ""
	}
	compared := maps.Clone(many)
	compared[".helmignore"] = strings.Repeat("abcdefg\n", helmIgnoreSize/8)
	deep := map[string]string{strings.Repeat("d/", deepest+2) + "a": ""}
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no YAML in values":        {map[string]string{"values.yaml": "a: 1\nb: [\n"}, "web/values.yaml:"},
		"no YAML in Chart":         {map[string]string{"Chart.yaml": "a: [\n"}, "web/Chart.yaml:"},
		"no name":                  {map[string]string{"Chart.yaml": "apiVersion: v2\nversion: 1.0.0\n"}, "web/Chart.yaml: "},
		"a library":                {map[string]string{"Chart.yaml": metadata + "type: library\n"}, "web/Chart.yaml: this is a library chart"},
		"a syntax error":           {map[string]string{"templates/a.yaml": "a: 1\n{{ if }}\n"}, "web/templates/a.yaml:2: not a template: missing value for if"},
		"an unknown function":      {map[string]string{"templates/a.yaml": "\n\n{{ env \"HOME\" }}"}, `web/templates/a.yaml:3: not a template: function "env" not defined`},
		"an unknown template":      {map[string]string{"templates/a.yaml": "\n{{ include \"x\" . }}"}, "web/templates/a.yaml:2: include: the chart has no template of this name"},
		"a nil pointer":            {map[string]string{"templates/a.yaml": "\n\n{{ .Values.a.b.c }}"}, "web/templates/a.yaml:3: at {{ .Values.a.b.c }}: nil pointer"},
		"in a helper":              {map[string]string{"templates/_h.tpl": "\n{{ define \"h\" }}\n{{ .Values.a.b }}{{ end }}", "templates/a.yaml": "{{ include \"h\" . }}"}, "web/templates/_h.tpl:3: at {{ .Values.a.b }}: nil pointer evaluating interface {}.b, for web/templates/a.yaml"},
		"in tpl":                   {map[string]string{"templates/a.yaml": "\n{{ tpl \"{{ .Values.a.b }}\" . }}"}, "(in the text of tpl)"},
		"a required value":         {map[string]string{"templates/a.yaml": "a: {{ required \"set host\" .Values.host }}"}, "web/templates/a.yaml:1: the chart refuses its values: set host"},
		"a value in a message":     {map[string]string{"templates/a.yaml": `{{ mustToDate "2006" "hunter2" }}`}, "web/templates/a.yaml:1: mustToDate: parsing time (a value) as (a value)"},
		"in a subchart":            {map[string]string{"Chart.yaml": metadata + "dependencies: [{name: db, version: 1.0.0}]\n", "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "charts/db/templates/a.yaml": "\n{{ fail \"no\" }}"}, "web/charts/db/templates/a.yaml:2: the chart refuses"},
		"a missing dependency":     {map[string]string{"Chart.yaml": metadata + "dependencies: [{name: db, version: 1.0.0, repository: \"https://example.com\"}]\n"}, "web/Chart.yaml:5: dependencies: the chart db is not in web/charts"},
		"a newer Kubernetes":       {map[string]string{"Chart.yaml": metadata + "kubeVersion: \">=1.40-0\"\n"}, "web/Chart.yaml:5: kubeVersion: the chart needs Kubernetes >=1.40-0"},
		"a schema":                 {map[string]string{"values.yaml": "port: hunter2\n", "values.schema.json": `{"properties": {"port": {"type": "integer"}}}`}, "web/values.schema.json: the values do not meet the schema: port violates"},
		"a schema elsewhere":       {map[string]string{"values.schema.json": `{"$ref": "https://example.com/a.json"}`}, "nothing is downloaded"},
		"a link":                   {map[string]string{"templates/a.yaml": "link to /etc/passwd"}, "web/templates/a.yaml: this is a symbolic link"},
		"many files":               {many, "more than 5000 files"},
		"many patterns":            {map[string]string{".helmignore": strings.Repeat("a\n", helmIgnoreSize/2+1)}, "web/.helmignore: it has more than 64 KiB of patterns"},
		"many comparisons":         {compared, "web/files: up to here the chart has too many files and directories for a chart, or for the patterns of its .helmignore: 50"},
		"deep directories":         {deep, "nested deeper than 20 levels"},
		"a subchart in itself":     {map[string]string{"charts/db-1.0.0.tgz": packed(t, 5)}, "web/charts/db-1.0.0.tgz: not a packed chart: packed charts are in each other more than 3 levels deep"},
		"a large subchart":         {map[string]string{"charts/db-1.0.0.tgz": packed(t, 2, "charts/big-1.0.0.tgz", packed(t, 1, "big", strings.Repeat("x", 70<<20)))}, "web/charts/db-1.0.0.tgz: up to here the files of the chart take more than 64 MiB"},
		"many files in a subchart": {map[string]string{"charts/db-1.0.0.tgz": packed(t, 1, make([]string, 2*maxFiles)...)}, "has more than 5000 files"},
		"a link in a subchart":     {map[string]string{"charts/db-1.0.0.tgz": packed(t, 1, "templates/a.yaml", "link to /etc/passwd")}, `web/charts/db-1.0.0.tgz: not a packed chart: "db/templates/a.yaml" is not a regular file; a chart must not contain links or devices`},
		"a link in one in another": {map[string]string{"charts/db-1.0.0.tgz": packed(t, 1, "charts/db-1.0.0.tgz", packed(t, 1, "values.yaml", "link to ../../../values.yaml"))}, `web/charts/db-1.0.0.tgz: not a packed chart: "db/values.yaml" is not a regular file`},
		"a path out of a subchart": {map[string]string{"charts/db-1.0.0.tgz": packed(t, 1, "../../templates/a.yaml", "a: b")}, `web/charts/db-1.0.0.tgz: not a packed chart: "db/../../templates/a.yaml" is outside the chart`},
		"a path from the root":     {map[string]string{"charts/db-1.0.0.tgz": packed(t, 1, "/etc/passwd", "a: b")}, `web/charts/db-1.0.0.tgz: not a packed chart: "db//etc/passwd" is outside the chart`},
		"a damaged subchart":       {map[string]string{"charts/db-1.0.0.tgz": "no"}, "web/charts/db-1.0.0.tgz: not a packed chart"},
	} {
		c := readChart(t, test.files)
		_, err := c.Render(usual)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// The line of an object is that of its document in the template.
func TestLines(t *testing.T) {
	c := readChart(t, map[string]string{"templates/a.yaml": "{{/* about */}}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# second\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n---\nkind: ConfigMap\n", "crds/b.yaml": "kind: CustomResourceDefinition\n"})
	out, err := c.Render(usual)
	if err != nil || len(out) != 2 || !out[0].Literal || out[0].Path != "web/crds/b.yaml" || out[1].Path != "web/templates/a.yaml" {
		t.Fatalf("%+v %v", out, err)
	}
	for document, want := range map[int]int{1: 2, 3: 11} {
		if got := out[1].line(document, "ConfigMap"); got != want {
			t.Errorf("document %d is at line %d, want %d", document, got, want)
		}
	}
	if got := out[1].line(5, "Secret"); got != 7 {
		t.Errorf("the Secret is at line %d, want 7", got)
	}
	if out, err = c.Render(Inputs{Release: "a", Namespace: "b", KubeVersion: "1.30", SkipCRDs: true}); err != nil || len(out) != 1 {
		t.Errorf("without definitions: %+v %v", out, err)
	}
}

// The output of a template is written as Helm writes it, so that a block of text at the end has the line break that it has there.
func TestDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"data:\n  a: |\n    b":           "data:\n  a: |\n    b\n",
		"---apiVersion: v1":              "---\napiVersion: v1\n",
		"a: 1\n---\nb: 1\n--- # c\nd: 1": "a: 1\n---\nb: 1\n---\n# c\nd: 1\n",
		"a: 1\n---# c\nb: 1":             "a: 1\n---\n# c\nb: 1\n",
		"--- a: 1":                       "---\na: 1\n",
	} {
		if got := string(documents([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A chart is released between renderings, and keeps neither files nor templates then.
func TestRelease(t *testing.T) {
	c := readChart(t, map[string]string{"templates/a": "{{ .Release.Name }}"})
	for range 2 {
		out, err := c.Render(usual)
		if err != nil || len(out) != 1 || string(out[0].Text) != usual.Release+"\n" {
			t.Errorf("rendered as %v, %v", out, err)
		}
		c.Release()
		if c.files != nil || c.parsing.root != nil {
			t.Error("a released chart has files or templates")
		}
	}
}
