package overlay

import (
	"path"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

var east = Cluster{
	Name:       "east",
	Labels:     map[string]string{"env": "prod", "topology.kubernetes.io/region": "eu-1", "empty": ""},
	Properties: map[string]string{"size": "large", "bad": "a/b", "dots": ".."},
}

// The variables of a path are replaced by the values of a cluster. If the cluster lacks one, the error says how to add it.
func TestPathFor(t *testing.T) {
	for text, want := range map[string]string{
		"apps/shop":                                         "apps/shop",
		"./apps/shop/":                                      "apps/shop",
		"../common/${cluster.name}":                         "../common/east",
		"clusters/${cluster.name}":                          "clusters/east",
		"a/${cluster.labels.env}-${cluster.name}/b":         "a/prod-east/b",
		"a/${cluster.labels.topology.kubernetes.io/region}": "a/eu-1",
		"a/${cluster.properties.size}":                      "a/large",
		"a/${cluster.labels.tier:-default}":                 "a/default",
		"a/${cluster.labels.env:-default}":                  "a/prod",
		"a/${cluster.labels.tier}":                          "error: cluster east has no label tier; add it to its MemberCluster, or write a default such as ${cluster.labels.tier:-TEXT}",
		"a/${cluster.properties.node-count}":                "error: cluster east has no declared property node-count; add the annotation property.gitfleet.dev/node-count to its MemberCluster, or write a default such as ${cluster.properties.node-count:-TEXT}",
		"a/${cluster.labels.empty}":                         "error: the label empty of cluster east is empty, and cannot be part of a path; change it",
		"a/${cluster.properties.bad}":                       `error: the declared property bad of cluster east is "a/b", which has a slash, and cannot be part of a path; change it`,
		"a/${cluster.properties.dots}":                      `error: the declared property dots of cluster east is "..", and cannot be part of a path; change it`,
		"":                                                  `error: "" is not a directory of the repository`,
		".":                                                 `error: "." is not a directory of the repository`,
		"/apps":                                             `error: "/apps" is not a directory of the repository`,
		"a//b":                                              `error: "a//b" is not a directory of the repository`,
		"a/${cluster.name}/../b":                            `error: "a/${cluster.name}/../b" is not a directory of the repository`,
		"a/${cluster.name":                                  `error: "a/${cluster.name" lacks the closing bracket of a variable`,
		"a/${cluster.label.env}":                            "error: ${cluster.label.env} is not known; write ${cluster.name}, ",
		"a/${name}":                                         "error: ${name} is not known",
		"a/${cluster.labels.}":                              "error: ${cluster.labels.} is not known",
		"a/${cluster.labels.env:-}":                         "error: the default of ${cluster.labels.env:-} is empty; write one name",
		"a/${cluster.labels.env:-../b}":                     `error: the default of ${cluster.labels.env:-../b} is "../b", which has a slash; write one name`,
	} {
		p, err := Parse(text)
		got := ""
		if err == nil {
			got, err = p.For(east)
		}
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want && !(strings.HasPrefix(want, "error: ") && strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// The patterns match what the path means for some cluster, and nothing else.
func TestPatterns(t *testing.T) {
	for _, test := range []struct {
		path, name string
		want       bool
	}{
		{"clusters/${cluster.name}", "clusters/east", true},
		{"clusters/${cluster.name}", "clusters/east/apps", false},
		{"a/x-${cluster.name}-y", "a/x-east-y", true},
		{"a/x-${cluster.name}-y", "a/x--y", false},
		{"a/[b]*${cluster.name}", "a/[b]*east", true},
		{"a/[b]*${cluster.name}", "a/bxeast", false},
		{`a/b\c`, `a/b\c`, true},
	} {
		p, err := Parse(test.path)
		if err != nil {
			t.Fatal(err)
		}
		patterns, names := p.Patterns(), strings.Split(test.name, "/")
		got := len(patterns) == len(names)
		for i := range min(len(patterns), len(names)) {
			ok, err := path.Match(patterns[i], names[i])
			got = got && ok && err == nil
		}
		if got != test.want {
			t.Errorf("%s matches %s: %t", test.path, test.name, got)
		}
	}
}

// The first directory that exists is chosen.
func TestChoose(t *testing.T) {
	exists := func(dir string) bool { return dir == "fleet/clusters/east" || dir == "fleet/default" }
	for name, test := range map[string]struct {
		spec api.OverlaySpec
		want string
	}{
		"one":     {api.OverlaySpec{Path: "clusters/${cluster.name}"}, "fleet/clusters/east"},
		"first":   {api.OverlaySpec{Paths: []string{"clusters/${cluster.name}", "default"}}, "fleet/clusters/east"},
		"second":  {api.OverlaySpec{Paths: []string{"envs/${cluster.labels.env}", "default"}}, "fleet/default"},
		"none":    {api.OverlaySpec{Paths: []string{"a", "b"}}, "error: for cluster east the commit has no directory fleet/a and no directory fleet/b; add it, or write whenMissing: Ignore if the cluster is to get nothing"},
		"ignored": {api.OverlaySpec{Path: "a", WhenMissing: api.WhenMissingIgnore}, ""},
		"a label that is missing is never ignored": {api.OverlaySpec{Path: "${cluster.labels.x}", WhenMissing: api.WhenMissingIgnore},
			"error: cluster east has no label x; add it to its MemberCluster, or write a default such as ${cluster.labels.x:-TEXT}"},
	} {
		dirs, err := Choose(&test.spec, "fleet", east, exists, nil)
		got := strings.Join(dirs, " ")
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Wildcards choose all directories that match, and for the same names the first path that exists.
func TestChooseWithWildcards(t *testing.T) {
	all := []string{"fleet/apps/.git/prod", "fleet/apps/a/prod", "fleet/apps/b/prod/east", "fleet/apps/b/prod/west", "fleet/apps/c/base", "fleet/apps/b/base", "infra/x-dns/prod", "infra/y/prod"}
	for name, test := range map[string]struct {
		spec api.OverlaySpec
		want string
	}{
		"one name":            {api.OverlaySpec{Path: "apps/*/${cluster.labels.env}"}, "fleet/apps/a/prod"},
		"with the cluster":    {api.OverlaySpec{Path: "apps/*/*/${cluster.name}"}, "fleet/apps/b/prod/east"},
		"a part of a name":    {api.OverlaySpec{Path: "../infra/x-*/prod"}, "infra/x-dns/prod"},
		"a fallback for each": {api.OverlaySpec{Paths: []string{"apps/*/prod/${cluster.name}", "apps/*/prod", "apps/*/base"}}, "fleet/apps/a/prod fleet/apps/b/prod/east fleet/apps/c/base"},
		"none":                {api.OverlaySpec{Path: "apps/*/dev"}, "error: for cluster east the commit has no directory fleet/apps/*/dev; add it, or write whenMissing: Ignore if the cluster is to get nothing"},
		"ignored":             {api.OverlaySpec{Path: "apps/*/dev", WhenMissing: api.WhenMissingIgnore}, ""},
		"parts": {api.OverlaySpec{Parts: []api.OverlayPart{{Path: "apps/*/prod"}, {Paths: []string{"apps/*/prod/${cluster.name}", "apps/*/base"}}, {Path: "../infra/*/*"}, {Path: "none"}}},
			"fleet/apps/a/prod fleet/apps/b/prod/east fleet/apps/c/base infra/x-dns/prod infra/y/prod"},
		"a directory of two parts": {api.OverlaySpec{Parts: []api.OverlayPart{{Path: "apps/*/prod"}, {Path: "*/a/prod"}}}, "fleet/apps/a/prod"},
		"none of the parts":        {api.OverlaySpec{Parts: []api.OverlayPart{{Path: "apps/*/dev"}, {Path: "web/*"}}}, "error: for cluster east the commit has no directory fleet/apps/*/dev and no directory fleet/web/*; add it, or write whenMissing: Ignore if the cluster is to get nothing"},
		"any depth":                {api.OverlaySpec{Path: "apps/**/dev"}, `error: "apps/**/dev" has **, and * stands for one name; write the path with a * for each level`},
	} {
		dirs, err := Choose(&test.spec, "fleet", east, func(string) bool { return false }, all)
		got := strings.Join(dirs, " ")
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// A value of a cluster is no pattern.
func TestValuesAreNoWildcards(t *testing.T) {
	c := Cluster{Name: "one", Properties: map[string]string{"any": "*"}}
	dirs, err := Choose(&api.OverlaySpec{Path: "*/${cluster.properties.any}"}, ".", c, nil, []string{"a/b", "a/*"})
	if err != nil || strings.Join(dirs, " ") != "a/*" {
		t.Errorf("%q, %v", dirs, err)
	}
}

// A path contains the directories that it means and all below them.
func TestContains(t *testing.T) {
	for _, test := range []struct {
		path, dir string
		want      bool
	}{
		{"apps/web", "fleet/apps/web", true},
		{"apps/web", "fleet/apps/web/prod", true},
		{"apps/*/dev", "fleet/apps/web/dev/a", true},
		{"apps/web", "fleet/apps/web2", false},
		{"apps/web", "fleet/apps", false},
		{"../apps", "apps/web", true},
	} {
		if p, err := ParseWild(test.path); err != nil || p.Contains("fleet", test.dir) != test.want {
			t.Errorf("%s contains %s: %t, %v", test.path, test.dir, !test.want, err)
		}
	}
}
