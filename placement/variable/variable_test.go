package variable

import (
	"strings"
	"testing"
)

// Only variables of a cluster are variables, and what is written with two dollar signs is text.
func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                                      "plain",
		"a ${cluster.name} b":                        "a |${cluster.name}| b",
		"${cluster.labels.a}${vars.b:-x}":            "|${cluster.labels.a}||${vars.b:-x}|",
		"${HOME} ${cluster.name":                     "a variable lacks its closing bracket; write " + Known,
		"${HOME} ${MEMBER-CLUSTER-NAME} $cluster":    "${HOME} ${MEMBER-CLUSTER-NAME} $cluster",
		"$${cluster.name} ${cluster.name}":           "${cluster.name} |${cluster.name}|",
		"$$${vars.a}":                                "$${vars.a}",
		"${cluster.names}":                           "${cluster.names} is not known; write " + Known,
		"${vars.}":                                   "${vars.} is not known; write " + Known,
		"${cluster.properties.example.com/tier:-:-}": "|${cluster.properties.example.com/tier:-:-}|",
		"${outer ${vars.a}}":                         "${outer |${vars.a}|}",
	} {
		texts, variables, err := Split(text)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = texts[0]
			for i, v := range variables {
				got += "|" + v.Text + "|" + texts[i+1]
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if !In(text) && len(variables) > 0 {
			t.Errorf("%s has variables", text)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("$${cluster.name} ${vars.a:-b}")
	f.Fuzz(func(t *testing.T, text string) {
		texts, variables, err := Split(text)
		if err == nil && len(texts) != len(variables)+1 {
			t.Errorf("%q: %d texts and %d variables", text, len(texts), len(variables))
		}
		if err == nil && len(variables) == 0 && !strings.Contains(text, "$${") && texts[0] != text {
			t.Errorf("%q has become %q", text, texts[0])
		}
	})
}
