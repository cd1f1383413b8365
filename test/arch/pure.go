package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// thinking are the rooms that only think: a value goes in, a value comes out.
var thinking = []string{
	"placement", "placement/api", "placement/expression", "placement/rollout", "placement/work",
	"reconciler/diff", "reconciler/forecast", "reconciler/health", "reconciler/plan", "reconciler/printer", "reconciler/status",
}

// apart say what rooms may not import, because it leads out of the values they
// are given: to a machine, a network, another goroutine, chance.
var apart = []struct {
	rooms, packages []string
	why             string
}{
	{
		thinking,
		[]string{
			"context", "log", "math/rand", "crypto/rand", "net", "os", "sync", "syscall",
			"github.com/google/uuid", "k8s.io/klog",
			"k8s.io/apimachinery/pkg/util/rand", "k8s.io/apimachinery/pkg/util/uuid", "k8s.io/apimachinery/pkg/util/wait",
		},
		"it only thinks: have it handed over as a value",
	},
	{
		[]string{
			"gitsource/hub", "gitsource/hub/build", "gitsource/hub/cache", "gitsource/hub/document", "gitsource/hub/limit", "gitsource/hub/problem",
			"gitsource/hub/schema", "gitsource/hub/tree", "gitsource/hub/validation",
		},
		[]string{"context", "log", "math/rand", "crypto/rand", "net", "os", "syscall"},
		"it sees nothing but the files of a commit",
	},
}

func pure(t *tree, report report) {
	for _, f := range t.files {
		if !f.product() {
			continue
		}
		for _, a := range apart {
			if !slices.Contains(a.rooms, f.room) {
				continue
			}
			for _, i := range f.imports {
				if under(i.path, a.packages...) && i.path != "net/url" {
					report(f.path, i.line, "%s may not import %s: %s", f.room, i.path, a.why)
				}
			}
		}
	}
}

// clocks are what answers with the present, or waits for a later one.
var clocks = map[string][]string{
	"time":                                 {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
}

func clock(t *tree, report report) {
	for _, f := range t.files {
		if !f.product() || !slices.Contains(thinking, f.room) {
			continue
		}
		f.selectors(f.syntax, func(importPath, name string, at ast.Node) {
			if slices.Contains(clocks[importPath], name) {
				report(f.path, t.line(at), "%s may not use %s.%s: it reads no clock, and takes now as an argument", f.room, importPath, name)
			}
		})
	}
}

// light are the rooms that carry no heavy library with them, not even through
// another room: a program can use them and stay small.
var light = []string{
	"placement", "placement/api", "placement/rollout", "placement/work",
	"reconciler/diff", "reconciler/health",
}

// bearable are the libraries that light rooms may reach: the words of
// Kubernetes, a JSON patch, comparison of fields, and what those bring along.
var bearable = []string{
	"k8s.io/apimachinery",
	"github.com/evanphx/json-patch",
	"sigs.k8s.io/structured-merge-diff",
	"sigs.k8s.io/json", "sigs.k8s.io/yaml", "go.yaml.in/yaml",
	"github.com/fluxcd/cli-utils/pkg/kstatus", // health, and with it the types of core/v1
	"k8s.io/api",

	"github.com/fxamacker/cbor", "github.com/go-logr/logr", "github.com/json-iterator/go", "github.com/modern-go",
	"github.com/x448/float16", "golang.org/x/net", "golang.org/x/text", "gopkg.in/inf.v0",
	"k8s.io/klog", "k8s.io/kube-openapi", "k8s.io/utils", "sigs.k8s.io/randfill",
}

func leaves(t *tree, report report) {
	for _, room := range light {
		for _, f := range t.files {
			if f.room != room || !f.product() {
				continue
			}
			for _, i := range f.imports {
				if way := t.graph.way(i.path, t.bearable); way != nil {
					report(f.path, i.line, "%s stays light, and may not reach %s (by %s)", room, way[len(way)-1], strings.Join(way, " → "))
				}
			}
		}
	}
}

// bearable reports whether a light room may reach a package; it may then also
// reach what that imports, if that is bearable.
func (t *tree) bearable(importPath string) bool {
	return standard(importPath) || under(importPath, t.module) || under(importPath, bearable...)
}

// way returns a shortest way from a package to one that is not allowed; nil if
// there is none.
func (g graph) way(from string, allowed func(string) bool) []string {
	came := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if !allowed(at) {
			var way []string
			for ; at != ""; at = came[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			return way
		}
		for _, next := range g[at] {
			if _, seen := came[next]; !seen {
				came[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}
