package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// purePackages take values and return values: they do no I/O and read no clock.
var purePackages = []string{
	"placement", "placement/api", "placement/controllers", "placement/expression", "placement/listitem", "placement/overlay", "placement/reference",
	"placement/rollout", "placement/variable", "placement/variable/postbuild", "placement/window", "placement/work",
	"reconciler/diff", "reconciler/forecast", "reconciler/health", "reconciler/intern", "reconciler/member/decide", "reconciler/occurrence", "reconciler/plan", "reconciler/plan/fleet", "reconciler/plan/ownership", "reconciler/printer", "reconciler/protocol", "reconciler/sharedlist",
	"reconciler/status", "reconciler/status/conditions", "reconciler/status/event", "reconciler/status/membercluster", "reconciler/status/metadata", "reconciler/status/updaterun",
}

// forbidden lists the imports with which a package would depend on more than its arguments: on the
// machine, the network, other goroutines or a random source.
var forbidden = []struct {
	packages, imports []string
	why               string
}{
	{
		purePackages,
		[]string{
			"context", "log", "math/rand", "crypto/rand", "net", "os", "sync", "syscall",
			"github.com/google/uuid", "k8s.io/klog",
			"k8s.io/apimachinery/pkg/util/rand", "k8s.io/apimachinery/pkg/util/uuid", "k8s.io/apimachinery/pkg/util/wait",
		},
		"it is pure: take the value as an argument",
	},
	{
		[]string{
			"gitsource/hub", "gitsource/hub/build", "gitsource/hub/chart", "gitsource/hub/document", "gitsource/hub/grant", "gitsource/hub/limit",
			"gitsource/hub/lockfile", "gitsource/hub/problem", "gitsource/hub/schema", "gitsource/hub/serverfields", "gitsource/hub/sops", "gitsource/hub/tree", "gitsource/hub/validation", "gitsource/hub/walk",
		},
		[]string{"context", "log", "math/rand", "crypto/rand", "net", "os", "syscall"},
		"it reads nothing but the files of a commit",
	},
}

func pure(t *tree, report report) {
	for _, f := range t.files {
		if !f.product() {
			continue
		}
		for _, a := range forbidden {
			if !slices.Contains(a.packages, f.pkg) {
				continue
			}
			for _, i := range f.imports {
				if under(i.path, a.imports...) && i.path != "net/url" {
					report(f.path, i.line, "%s may not import %s: %s", f.pkg, i.path, a.why)
				}
			}
		}
	}
}

// clocks are the functions that return the current time or wait.
var clocks = map[string][]string{
	"time":                                 {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
}

func clock(t *tree, report report) {
	for _, f := range t.files {
		if !f.product() || !slices.Contains(purePackages, f.pkg) {
			continue
		}
		f.selectors(f.syntax, func(importPath, name string, at ast.Node) {
			if slices.Contains(clocks[importPath], name) {
				report(f.path, t.line(at), "%s may not use %s.%s: it is pure: take the current time as an argument", f.pkg, importPath, name)
			}
		})
	}
}

// lightPackages depend on no library but lightLibraries, directly or not, so that a program can use
// them and stay small.
var lightPackages = []string{
	"placement", "placement/api", "placement/rollout", "placement/work",
	"reconciler/diff", "reconciler/health",
}

// lightLibraries are what light packages may depend on: Kubernetes' types, JSON patches, the
// comparison of fields, and what these import.
var lightLibraries = []string{
	"k8s.io/apimachinery",
	"github.com/evanphx/json-patch",
	"sigs.k8s.io/structured-merge-diff",
	"sigs.k8s.io/json", "sigs.k8s.io/yaml", "go.yaml.in/yaml",
	"github.com/fluxcd/cli-utils/pkg/kstatus", // with the types of core/v1, for reconciler/health
	"k8s.io/api",

	"github.com/fxamacker/cbor", "github.com/go-logr/logr", "github.com/json-iterator/go", "github.com/modern-go",
	"github.com/x448/float16", "golang.org/x/net", "golang.org/x/text", "gopkg.in/inf.v0",
	"k8s.io/klog", "k8s.io/kube-openapi", "k8s.io/utils", "sigs.k8s.io/randfill",
}

func dependencies(t *tree, report report) {
	for _, pkg := range lightPackages {
		for _, f := range t.files {
			if f.pkg != pkg || !f.product() {
				continue
			}
			for _, i := range f.imports {
				if chain := t.graph.chain(i.path, t.lightLibrary); chain != nil {
					report(f.path, i.line, "%s may not depend on %s (imported by %s)", pkg, chain[len(chain)-1], strings.Join(chain, " → "))
				}
			}
		}
	}
}

// lightLibrary reports whether a light package may depend on a package.
func (t *tree) lightLibrary(importPath string) bool {
	return standard(importPath) || under(importPath, t.module) || under(importPath, lightLibraries...)
}

// chain returns a shortest chain of imports from a package to one that is not allowed, and nil if
// there is none.
func (g graph) chain(from string, allowed func(string) bool) []string {
	importedBy := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if !allowed(at) {
			var chain []string
			for ; at != ""; at = importedBy[at] {
				chain = append(chain, at)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, next := range g[at] {
			if _, seen := importedBy[next]; !seen {
				importedBy[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}
