package postbuild

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var values = map[string]string{
	"domain": "example.com", "replicas": "3", "on": "true", "id": "0042", "quote": `"`, "list": `["10.0.0.1", 5]`, "map": "{a: 1}", "empty": "",
	"text": "${domain} $$x", "path": "/data/bozo/ideas", "lines": "a\nb: c", "colon": "a: b", "half": "1.5", "whole": "2.0", "none": "null", "star": "*.example.com",
}

func TestReplace(t *testing.T) {
	for in, want := range map[string]string{
		"a: x-${domain}":                       `{"a":"x-example.com"}`,
		"a: ${replicas}":                       `{"a":3}`,
		"a: '${replicas}'":                     `{"a":3}`, // the quotation marks are gone when kustomize has built the object
		"a: ${quote}${id}${quote}":             `{"a":"0042"}`,
		"a: ${on}":                             `{"a":true}`,
		"a: ${half}":                           `{"a":1.5}`,
		"a: ${none}":                           `{"a":null}`,
		"a: ${star}":                           `{"a":"*.example.com"}`,
		"a: ${list}":                           `{"a":["10.0.0.1",5]}`,
		"a: ${map}":                            `{"a":{"a":1}}`,
		"a: ${colon}":                          `{"a":"a: b"}`,
		"a: ${lines}":                          `{"a":"a\nb: c"}`,
		"a: 'x: ${replicas}'":                  `{"a":"x: 3"}`,
		"a: [\"${replicas}\", '# ${on}']":      `{"a":[3,"# true"]}`,
		"text: ['${replicas}', '${replicas}']": `{"text":["3",3]}`,
		"a: {'${domain}': b}":                  `{"a":{"example.com":"b"}}`,
		"a: ${other:=x}":                       `{"a":"x"}`,
		"a: ${other:-7}":                       `{"a":7}`,
		"a: ${other=x}":                        `{"a":"x"}`,
		"a: ${empty:=x}":                       `{"a":"x"}`,
		"a: ${empty}":                          `{"a":""}`,
		"a: ${other:=}":                        `{"a":""}`,
		"a: ${domain:=x}":                      `{"a":"example.com"}`,
		"a: ${other:=a-${domain}-${more:-b}}c": `{"a":"a-example.com-bc"}`,
		"a: $${domain} $domain $$(x)":          `{"a":"${domain} $domain $(x)"}`,
		"a: ${text}":                           `{"a":"${domain} $$x"}`,
		"a: ${path:1:4}${path:10}":             `{"a":"data/ideas"}`,
		"a: ${path/\\/data/x}":                 `{"a":"x/bozo/ideas"}`,
		"a: ${path//o/0}":                      `{"a":"/data/b0z0/ideas"}`,
		"a: ${path/#\\/data/}":                 `{"a":"/bozo/ideas"}`,
		"a: ${path/%ideas/x}":                  `{"a":"/data/bozo/x"}`,
		"a: ${domain^^}-${domain^}":            `{"a":"EXAMPLE.COM-Example.com"}`,
		"a: ${DOMAIN_NAME}":                    "a: variable DOMAIN_NAME has no value",
		"a: [x, {b: '${domain'}]":              "a.1.b: a variable lacks its closing bracket; write ${NAME}, or $${ for the text ${",
		"a: ${domain%x}":                       "a: ${domain%x} is not known; write ${NAME}, ${NAME:=DEFAULT}, ${NAME:POSITION:LENGTH}, ${NAME/OLD/NEW} or ${NAME^^}, or $${domain%x} for the text",
		"a: ${cluster.name}":                   "a: ${cluster.name} is not known; write ${NAME}, ${NAME:=DEFAULT}, ${NAME:POSITION:LENGTH}, ${NAME/OLD/NEW} or ${NAME^^}, or $${cluster.name} for the text",
		"a: {'${domain}': 1, example.com: 2}":  `a: two keys are "example.com"`,
	} {
		t.Run(in, func(t *testing.T) {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(in), &object); err != nil {
				t.Fatal(err)
			}
			before := fmt.Sprint(object)
			out, errs := Replace(object, values, map[string]bool{Key([]string{"text", "0"}): true})
			text, _ := json.Marshal(out)
			got := string(text)
			if errs != nil {
				got = ""
				for _, e := range errs {
					got += strings.Join(e.Field, ".") + ": " + e.Err.Error()
				}
			}
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if fmt.Sprint(object) != before {
				t.Error("the object has changed")
			}
		})
	}
}

func TestAppliesToObjectsThatDoNotRefuse(t *testing.T) {
	for in, want := range map[string]bool{
		"a: b":        false,
		"a: ['$x']":   false,
		"a: ['${x}']": true,
		"${x}: b":     true,
		"a: $$x":      true,
		"{a: '${x}', metadata: {labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}}}":      false,
		"{a: '${x}', metadata: {annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}}": false,
		"{a: '${x}', metadata: {annotations: {kustomize.toolkit.fluxcd.io/substitute: enabled}}}":  true,
	} {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(in), &object); err != nil {
			t.Fatal(err)
		}
		if got := Applies(object); got != want {
			t.Errorf("%s: %t, want %t", in, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	object := map[string]any{"a": "${b} ${c:=x${d}}", "${e}": []any{"$${f}", "${g", "${c^^}"}}
	if got := fmt.Sprint(Names(object), Required(object)); got != "[b c d e] [b c d e]" {
		t.Error(got)
	}
	if got := fmt.Sprint(Required("${a:=${b:-c}}")); got != "[]" {
		t.Error(got)
	}
}

func TestGrowthIsBounded(t *testing.T) {
	_, errs := Replace(map[string]any{"a": strings.Repeat("${x}", 20_000)}, map[string]string{"x": strings.Repeat("x", 64<<10)}, nil)
	if len(errs) != 1 || !strings.Contains(errs[0].Err.Error(), "larger by more than 1024 KiB") {
		t.Error(errs)
	}
}

func FuzzReplace(f *testing.F) {
	f.Add("${a:=${b}}$${c}${d:1:2}${e//x/y}")
	f.Fuzz(func(t *testing.T, text string) {
		out, errs := Replace(map[string]any{"a": text}, map[string]string{"a": "x", "b": "y"}, nil)
		if errs == nil && !isIn(text) && out["a"] != text {
			t.Errorf("%q has become %q", text, out["a"])
		}
	})
}
