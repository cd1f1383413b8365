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
	"text": "${domain} $$x", "path": "/data/bozo/ideas", "lines": "a\nb: c", "bomb": "{a: &a [1, 1], b: [*a, *a]}", "anchor": "&a [1]", "block": "- &a 1\n- *a", "spaces": "[ {a: b} ] # c", "colon": "a: b", "half": "1.5", "whole": "2.0", "none": "null", "star": "*.example.com",
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
		"a: ${spaces}":                         `{"a":[{"a":"b"}]}`,
		"a: ${bomb}":                           `{"a":"{a: \u0026a [1, 1], b: [*a, *a]}"}`,
		"a: ${anchor}":                         `{"a":"\u0026a [1]"}`,
		"a: ${block}":                          `{"a":"- \u0026a 1\n- *a"}`,
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
		"a: ${empty}":                          `{"a":null}`,
		"text: ['${empty}', '${empty}']":       `{"text":["",null]}`,
		"a: ${other:=}":                        `{"a":null}`,
		"a: ${other:=a$$b$${domain}}":          `{"a":"a$$b$example.com"}`,
		"a: ${domain/example/${id}}":           "a: ${domain/example/${id} is not known; write ${NAME}, ${NAME:=DEFAULT}, ${NAME:POSITION:LENGTH}, ${NAME/OLD/NEW} or ${NAME^^}, or $${domain/example/${id} for the text",
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
		"a: {'${domain}': 1, example.com: 2}":  `a: two keys are "example.com" once their variables are replaced; rename one of them, or change the value of its variable`,
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
	for name, test := range map[string]struct {
		text, value string
		large       bool
	}{
		"long values":                {strings.Repeat("${x}", 20_000), strings.Repeat("x", 64<<10), true},
		"a list of many short items": {"${x}", "[" + strings.Repeat("1,", 30_000) + "1]", true},
		"a list of some":             {"${x}", "[" + strings.Repeat("1,", 3_000) + "1]", false},
	} {
		_, errs := Replace(map[string]any{"a": test.text}, map[string]string{"x": test.value}, nil)
		if large := len(errs) == 1 && strings.Contains(errs[0].Err.Error(), "larger by more than 1024 KiB"); large != test.large {
			t.Errorf("%s: %v", name, errs)
		}
	}
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	if out, errs := Replace(map[string]any{"a": "${x}"}, map[string]string{"x": deep}, nil); errs != nil || out["a"] != deep {
		t.Errorf("a list of lists is %v %v", out, errs)
	}
}

// No error about a Secret has a part of its texts, since a password may look like a variable.
func TestErrorsQuoteNoSecrets(t *testing.T) {
	for data, want := range map[string]string{
		"{a: 'x${canary'}":                         errUnreadable.Error(),
		"{a: 'x${canary%a}'}":                      errUnreadable.Error(),
		"{a: 'x${canary}'}":                        "a variable has no value",
		"{'canary${a:=b}': x, 'canary${b:=b}': y}": errSameKeys.Error(),
	} {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte("kind: Secret\nstringData: "+data), &object); err != nil {
			t.Fatal(err)
		}
		if _, errs := Replace(object, nil, nil); len(errs) != 1 || errs[0].Err.Error() != want {
			t.Errorf("%s: %v, want %s", data, errs, want)
		}
	}
}

// Deeply nested defaults are refused, so that parsing them cannot overflow the stack.
func TestNestedDefaults(t *testing.T) {
	for n, want := range map[int]string{20: "<nil>", 21: "defaults are nested deeper than 20 levels; write fewer", 100_000: "defaults are nested deeper than 20 levels; write fewer"} {
		_, err := parse(strings.Repeat("${a:=", n) + strings.Repeat("}", n) + strings.Repeat("${a:=}", 30))
		if fmt.Sprint(err) != want {
			t.Errorf("%d: %v", n, err)
		}
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
