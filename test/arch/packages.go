package arch

import (
	"path"
	"slices"
	"strings"
)

// topLevelEntries are the entries of the top level whose names do not begin with a dot. The last
// two are the output of builds.
var topLevelEntries = []string{
	"cmd", "reconciler", "gitsource", "placement", "examples", "deploy", "test", "docs",
	"go.mod", "go.sum", "Makefile", "README.md", "LICENSE", "build", "gitfleet",
}

func topLevel(t *tree, report report) {
	for _, name := range t.entries {
		if !strings.HasPrefix(name, ".") && !slices.Contains(topLevelEntries, name) {
			report(name, 0, "not an entry of the top level: move it into one of its directories")
		}
	}
}

// mayImport lists the packages of the product, and which packages of this module each may import.
// A new package needs a row here and a line in docs/architecture.md.
var mayImport = map[string][]string{
	"placement/api":       {},
	"placement":           {"placement/api"},
	"placement/rollout":   {"placement", "placement/api"},
	"placement/work":      {"placement", "placement/api", "placement/listitem", "placement/overlay", "placement/variable"},
	"placement/overlay":   {"placement/api", "placement/variable"},
	"placement/variable":  {"placement/api"},
	"placement/window":    {"placement/api"},
	"placement/reference": {"placement/api"},

	"placement/controllers":        {"placement/api"},
	"placement/listitem":           {"placement/api"},
	"placement/expression":         {"placement/api"},
	"placement/variable/postbuild": {"placement/variable"},

	"gitsource":                {"gitsource/filelock", "gitsource/hostlimit", "gitsource/hub/grant", "gitsource/objects", "gitsource/remote", "gitsource/retryafter", "gitsource/signature", "placement/api"},
	"gitsource/filelock":       {},
	"gitsource/atomicfile":     {},
	"gitsource/hostlimit":      {},
	"gitsource/decryption":     {"gitsource/hub/sops"},
	"gitsource/charts":         {"gitsource/atomicfile", "gitsource/hostlimit", "gitsource/hub/limit", "gitsource/hub/lockfile", "gitsource/mask", "gitsource/remote"},
	"gitsource/objects":        {"gitsource/atomicfile"},
	"gitsource/remote":         {"gitsource/mask", "gitsource/objects", "gitsource/retryafter"},
	"gitsource/mask":           {},
	"gitsource/retryafter":     {},
	"gitsource/signature":      {},
	"gitsource/webhook":        {},
	"gitsource/forge":          {"gitsource/mask", "gitsource/retryafter"},
	"gitsource/forge/markdown": {},
	"gitsource/forge/owners":   {},
	"gitsource/hub":            {"gitsource/hub/build", "gitsource/hub/chart", "gitsource/hub/document", "gitsource/hub/grant", "gitsource/hub/limit", "gitsource/hub/lockfile", "gitsource/hub/problem", "gitsource/hub/schema", "gitsource/hub/serverfields", "gitsource/hub/sops", "gitsource/hub/tree", "gitsource/hub/validation", "gitsource/hub/walk", "placement/api", "placement/controllers", "placement/expression", "placement/listitem", "placement/overlay", "placement/variable", "placement/variable/postbuild", "placement/window"},
	"gitsource/hub/build":      {"gitsource/hub/chart", "gitsource/hub/document", "gitsource/hub/grant", "gitsource/hub/limit", "gitsource/hub/lockfile", "gitsource/hub/problem", "gitsource/hub/schema", "gitsource/hub/tree", "gitsource/hub/validation", "placement/api", "placement/listitem"},
	"gitsource/hub/chart":      {"gitsource/hub/document", "gitsource/hub/limit", "gitsource/hub/problem", "gitsource/hub/sops", "gitsource/hub/tree", "placement/api"},
	"gitsource/hub/document":   {"gitsource/hub/limit", "gitsource/hub/problem", "gitsource/hub/tree", "placement/api"},
	"gitsource/hub/grant":      {"gitsource/hub/problem", "placement/api"},
	"gitsource/hub/limit":      {},
	"gitsource/hub/lockfile":   {"gitsource/hub/document", "gitsource/hub/limit", "gitsource/hub/problem"},
	"gitsource/hub/problem":    {"placement/api"},
	"gitsource/hub/schema":     {"gitsource/hub/document", "gitsource/hub/problem", "placement/api", "placement/variable"},
	"gitsource/hub/sops":       {},
	"gitsource/hub/tree":       {"gitsource/hub/limit"},
	"gitsource/hub/validation": {"gitsource/hub/document", "placement/api", "placement/expression", "placement/overlay", "placement/variable", "placement/variable/postbuild", "placement/window"},
	"gitsource/hub/walk":       {"gitsource/hub/build", "gitsource/hub/document", "gitsource/hub/grant", "gitsource/hub/limit", "gitsource/hub/problem", "gitsource/hub/schema", "gitsource/hub/tree", "placement/api"},

	"gitsource/hub/serverfields": {"gitsource/hub/document", "placement/api", "placement/controllers"},

	"reconciler/approval":            {"gitsource/forge", "gitsource/forge/markdown", "placement/api", "reconciler/poll", "reconciler/status", "reconciler/status/updaterun"},
	"reconciler/poll":                {"gitsource/forge", "gitsource/remote", "gitsource/retryafter"},
	"reconciler/command":             {"gitsource/forge", "gitsource/forge/markdown", "reconciler/approval", "reconciler/history", "reconciler/poll", "reconciler/proposal", "reconciler/status"},
	"reconciler/diff":                {"placement/api", "placement/controllers"},
	"reconciler/crashguard":          {"gitsource/atomicfile"},
	"reconciler/faults":              {},
	"reconciler/gate":                {"gitsource/mask", "gitsource/remote", "placement", "placement/api", "placement/expression", "reconciler/health"},
	"reconciler/difftext":            {"placement/api", "placement/listitem", "reconciler/diff"},
	"reconciler/forecast":            {"gitsource/hub", "gitsource/hub/problem", "placement", "placement/api", "placement/listitem", "placement/reference", "placement/work", "reconciler/diff", "reconciler/difftext", "reconciler/ledger", "reconciler/plan", "reconciler/plan/fleet", "reconciler/protocol", "reconciler/status"},
	"reconciler/fulfilment":          {},
	"reconciler/gzipped":             {},
	"reconciler/health":              {"placement/api"},
	"reconciler/history":             {},
	"reconciler/history/recent":      {"reconciler/gzipped", "reconciler/history", "reconciler/ledger"},
	"reconciler/intern":              {},
	"reconciler/ledger":              {"gitsource/filelock", "placement", "placement/api", "reconciler/intern", "reconciler/ledger/segment", "reconciler/protocol"},
	"reconciler/ledger/segment":      {"reconciler/gzipped"},
	"reconciler/occurrence":          {"gitsource/hub", "placement", "placement/api", "reconciler/history", "reconciler/ledger", "reconciler/plan", "reconciler/protocol"},
	"reconciler/protocol":            {"placement", "placement/api"},
	"reconciler/printer":             {"placement/api", "placement/window", "reconciler/status"},
	"reconciler/plan":                {"gitsource/hub", "gitsource/hub/problem", "placement", "placement/api", "placement/rollout", "placement/work", "reconciler/fulfilment", "reconciler/intern", "reconciler/ledger", "reconciler/protocol", "placement/window", "reconciler/plan/fleet", "reconciler/plan/ownership", "reconciler/sharedlist"},
	"reconciler/plan/ownership":      {"placement/api", "placement/work", "reconciler/ledger"},
	"reconciler/plan/fleet":          {"gitsource/hub", "placement", "placement/api", "placement/work", "reconciler/ledger"},
	"reconciler/sharedlist":          {},
	"reconciler/status":              {"gitsource/hub", "gitsource/hub/problem", "placement", "placement/api", "placement/work", "reconciler/fulfilment", "reconciler/intern", "reconciler/ledger", "reconciler/occurrence", "reconciler/plan", "reconciler/protocol", "reconciler/sharedlist", "reconciler/status/conditions", "reconciler/status/event", "reconciler/status/membercluster", "reconciler/status/metadata", "reconciler/status/updaterun"},
	"reconciler/member":              {"placement", "placement/api", "placement/controllers", "placement/work", "reconciler/diff", "reconciler/faults", "reconciler/health", "reconciler/history", "reconciler/member/apply", "reconciler/member/autoscaler", "reconciler/member/availability", "reconciler/member/connection", "reconciler/member/content", "reconciler/member/decide", "reconciler/member/deletion", "reconciler/member/desired", "reconciler/member/discovery", "reconciler/member/drift", "reconciler/member/gatejob", "reconciler/member/hooks", "reconciler/member/immutable", "reconciler/member/inventory", "reconciler/member/memory", "reconciler/member/observed", "reconciler/member/owned", "reconciler/member/permission", "reconciler/member/pods", "reconciler/member/probe", "reconciler/member/progress", "reconciler/member/rbac", "reconciler/member/removal", "reconciler/member/retry", "reconciler/member/series", "reconciler/member/unlisted", "reconciler/member/watch", "reconciler/protocol"},
	"reconciler/member/account":      {"placement/api", "reconciler/member/connection", "reconciler/member/rbac"},
	"reconciler/member/immutable":    {},
	"reconciler/member/retry":        {"gitsource/retryafter"},
	"reconciler/member/series":       {},
	"reconciler/member/memory":       {},
	"reconciler/member/autoscaler":   {"placement/api", "placement/controllers", "reconciler/diff", "reconciler/member/connection"},
	"reconciler/member/deletion":     {"placement/api", "placement/work", "reconciler/health", "reconciler/member/connection", "reconciler/protocol"},
	"reconciler/member/gatejob":      {"placement/api", "placement/controllers", "reconciler/member/connection"},
	"reconciler/member/apply":        {"placement/api", "placement/controllers", "placement/work", "reconciler/diff", "reconciler/member/autoscaler", "reconciler/member/availability", "reconciler/member/connection", "reconciler/member/decide", "reconciler/member/deletion", "reconciler/member/desired", "reconciler/member/discovery", "reconciler/member/drift", "reconciler/member/immutable", "reconciler/member/inventory", "reconciler/member/observed", "reconciler/member/removal", "reconciler/protocol"},
	"reconciler/member/progress":     {"placement/api", "placement/controllers", "placement/work", "reconciler/diff", "reconciler/member/apply", "reconciler/member/connection", "reconciler/member/deletion", "reconciler/member/desired", "reconciler/member/inventory", "reconciler/member/observed", "reconciler/member/retry"},
	"reconciler/member/owned":        {"placement", "placement/api", "placement/controllers", "placement/work", "reconciler/member/apply", "reconciler/member/autoscaler", "reconciler/member/desired", "reconciler/member/hooks", "reconciler/member/inventory", "reconciler/member/observed"},
	"reconciler/member/desired":      {"placement/api", "placement/work", "reconciler/diff", "reconciler/member/hooks"},
	"reconciler/member/hooks":        {"placement/api", "placement/work", "reconciler/member/inventory"},
	"reconciler/member/content":      {"placement/api", "reconciler/member/connection"},
	"reconciler/member/compact":      {"placement/api"},
	"reconciler/member/observed":     {"placement/api", "reconciler/diff", "reconciler/health", "reconciler/member/compact"},
	"reconciler/member/connection":   {"gitsource/mask", "placement/api", "reconciler/faults", "reconciler/member/memory", "reconciler/member/retry", "reconciler/member/series"},
	"reconciler/member/discovery":    {"placement/api", "reconciler/member/connection", "reconciler/member/rbac", "reconciler/member/retry"},
	"reconciler/member/availability": {"placement/api", "placement/expression", "placement/work", "reconciler/diff", "reconciler/health"},
	"reconciler/member/watch":        {"placement/api", "placement/controllers", "reconciler/health", "reconciler/member/availability", "reconciler/member/connection", "reconciler/member/memory", "reconciler/member/observed", "reconciler/member/retry", "reconciler/member/series"},
	"reconciler/member/probe":        {"placement/api", "reconciler/member/connection", "reconciler/member/observed", "reconciler/member/retry", "reconciler/member/series", "reconciler/protocol"},
	"reconciler/member/decide":       {"placement/api", "reconciler/diff", "reconciler/member/deletion", "reconciler/member/drift", "reconciler/member/hooks"},
	"reconciler/member/drift":        {"placement/api", "placement/work", "reconciler/diff", "reconciler/health", "reconciler/member/observed", "reconciler/protocol"},
	"reconciler/member/inventory":    {"placement", "placement/api", "reconciler/diff", "reconciler/gzipped", "reconciler/member/compact", "reconciler/member/connection", "reconciler/member/memory", "reconciler/member/observed", "reconciler/member/retry", "reconciler/protocol"},
	"reconciler/member/unlisted":     {"placement/api", "reconciler/diff", "reconciler/member/connection", "reconciler/member/inventory"},
	"reconciler/member/kubeconfig":   {"reconciler/member/connection"},
	"reconciler/member/permission":   {"placement/work", "reconciler/member/connection", "reconciler/member/rbac", "reconciler/member/retry"},
	"reconciler/member/pods":         {"placement/api", "reconciler/diff", "reconciler/health", "reconciler/member/connection", "reconciler/member/retry"},
	"reconciler/member/rbac":         {"placement/api"},
	"reconciler/member/removal":      {"placement/api", "reconciler/diff", "reconciler/member/connection"},
	"reconciler": {
		"gitsource", "gitsource/hub", "gitsource/retryafter", "placement", "placement/api", "placement/work",
		"reconciler/crashguard", "reconciler/faults", "reconciler/history", "reconciler/ledger", "reconciler/occurrence", "reconciler/plan", "reconciler/protocol", "reconciler/status", "reconciler/status/event", "reconciler/status/updaterun", "reconciler/tracing",
	},
	"reconciler/proposal/edit":     {"gitsource/hub", "placement", "placement/api", "placement/listitem", "placement/work", "reconciler/diff", "reconciler/plan", "reconciler/plan/fleet", "reconciler/proposal/edited", "reconciler/proposal/yamledit", "reconciler/status"},
	"reconciler/proposal/edited":   {},
	"reconciler/proposal/rollback": {"gitsource/forge", "gitsource/forge/markdown", "gitsource/hub", "placement/api", "reconciler/plan", "reconciler/proposal/edited", "reconciler/status/updaterun"},
	"reconciler/proposal/yamledit": {"gitsource/forge/markdown", "placement/api"},
	"reconciler/proposal":          {"gitsource", "gitsource/forge", "gitsource/forge/markdown", "gitsource/forge/owners", "gitsource/hub", "gitsource/remote", "placement/api", "placement/work", "reconciler/poll", "reconciler/diff", "reconciler/difftext", "reconciler/faults", "reconciler/history", "reconciler/proposal/edit", "reconciler/proposal/rollback", "reconciler/protocol", "reconciler/status", "reconciler/status/conditions"},
	"reconciler/review":            {"gitsource", "gitsource/forge", "gitsource/forge/markdown", "gitsource/hub", "gitsource/hub/problem", "placement/api", "placement/work", "reconciler/poll", "reconciler/diff", "reconciler/forecast", "reconciler/fulfilment", "reconciler/member", "reconciler/plan", "reconciler/status", "reconciler/status/conditions"},
	"reconciler/replica":           {},
	"reconciler/tracing":           {},
	"reconciler/server":            {"placement/api", "reconciler/history", "reconciler/member/series", "reconciler/server/access", "reconciler/status", "reconciler/status/updaterun"},
	"reconciler/server/access":     {},
	"reconciler/server/store":      {},
	"reconciler/server/kubeapi": {
		"gitsource/hub", "placement/api", "reconciler/diff", "reconciler/ledger", "reconciler/printer", "reconciler/server/store", "reconciler/status", "reconciler/status/metadata",
	},

	"reconciler/status/conditions":    {"placement", "placement/api", "placement/work", "reconciler/plan", "reconciler/protocol", "reconciler/status/metadata"},
	"reconciler/status/event":         {"placement/api", "reconciler/history", "reconciler/ledger", "reconciler/occurrence", "reconciler/status/metadata"},
	"reconciler/status/membercluster": {"gitsource/hub", "placement/api", "reconciler/ledger", "reconciler/plan/fleet", "reconciler/status/event", "reconciler/status/metadata"},
	"reconciler/status/metadata":      {"placement/api"},
	"reconciler/status/updaterun":     {"gitsource/hub", "placement", "placement/api", "reconciler/history", "reconciler/ledger", "reconciler/occurrence", "reconciler/plan", "reconciler/status/event", "reconciler/status/metadata"},

	// These may also import everything in libraryDirs.
	"cmd/gitfleet/client":      {"cmd/gitfleet/lookup", "cmd/gitfleet/overview", "cmd/gitfleet/settings"},
	"cmd/gitfleet/exit":        {},
	"cmd/gitfleet/lookup":      {},
	"cmd/gitfleet/migration":   {},
	"cmd/gitfleet/offline":     {"cmd/gitfleet/settings"},
	"cmd/gitfleet/output":      {},
	"cmd/gitfleet/overview":    {"cmd/gitfleet/output"},
	"cmd/gitfleet/plantext":    {"cmd/gitfleet/output"},
	"cmd/gitfleet/settings":    {},
	"cmd/gitfleet/version":     {},
	"cmd/gitfleet/check":       commandImports,
	"cmd/gitfleet/compare":     commandImports,
	"cmd/gitfleet/daemon":      commandImports,
	"cmd/gitfleet/diagnostics": commandImports,
	"cmd/gitfleet/lock":        commandImports,
	"cmd/gitfleet/membership":  commandImports,
	"cmd/gitfleet/operate":     commandImports,
	"cmd/gitfleet/view":        commandImports,
	"cmd/gitfleet": append(slices.Clone(commandImports),
		"cmd/gitfleet/check", "cmd/gitfleet/compare", "cmd/gitfleet/daemon", "cmd/gitfleet/diagnostics", "cmd/gitfleet/lock", "cmd/gitfleet/membership", "cmd/gitfleet/operate", "cmd/gitfleet/view"),
}

// commandImports are what a package with commands may import; it may not import another such package.
var commandImports = []string{
	"cmd/gitfleet/client", "cmd/gitfleet/exit", "cmd/gitfleet/lookup", "cmd/gitfleet/offline", "cmd/gitfleet/output",
	"cmd/gitfleet/migration", "cmd/gitfleet/overview", "cmd/gitfleet/plantext", "cmd/gitfleet/settings", "cmd/gitfleet/version",
}

// libraryDirs are the directories whose packages all packages of the command may import.
var libraryDirs = []string{"gitsource", "placement", "reconciler"}

// product reports whether a file is part of what is shipped.
func (f *file) product() bool {
	return f.main && !f.test && under(f.pkg, "cmd", "reconciler", "gitsource", "placement")
}

func packages(t *tree, report report) {
	for _, f := range t.files {
		if !f.product() {
			continue
		}
		allowed, listed := mayImport[f.pkg]
		if !listed {
			report(f.pkg, 0, "a new package: add what it may import to test/arch/packages.go, and what it is to docs/architecture.md")
			continue
		}
		for _, i := range f.imports {
			pkg, ours := strings.CutPrefix(i.path, t.module+"/")
			if !ours || slices.Contains(allowed, pkg) || under(f.pkg, "cmd") && under(pkg, libraryDirs...) {
				continue
			}
			report(f.path, i.line, "%s may not import %s: %s", f.pkg, pkg, imports(allowed))
		}
	}
}

func imports(allowed []string) string {
	if len(allowed) == 0 {
		return "it imports no package of this module"
	}
	return "of this module it imports only " + strings.Join(allowed, ", ")
}

// vagueNames are package names that do not say what a package is for.
var vagueNames = []string{"util", "common", "type", "helper", "base"}

func names(t *tree, report report) {
	for _, f := range t.files {
		for _, name := range []string{f.syntax.Name.Name, path.Base(f.pkg)} {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "_test"), "s")
			if slices.Contains(vagueNames, name) {
				report(f.path, t.line(f.syntax.Name), "name the package after what it is for, not %q", f.syntax.Name.Name)
				break
			}
		}
	}
}
