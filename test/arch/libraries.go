package arch

import (
	"slices"
	"strings"
)

type libraryRule struct {
	libraries, packages []string
	why                 string
}

// libraryRules list which packages may import which libraries. The first row that matches an import
// counts; a library in no row may be imported by all. PACKAGE/... is a package and all below it.
var libraryRules = []libraryRule{
	{
		[]string{"github.com/go-git"},
		[]string{"gitsource", "gitsource/objects", "gitsource/remote"},
		"only gitsource, its object store and its remotes use Git",
	},
	{
		[]string{"sigs.k8s.io/kustomize"},
		[]string{"gitsource/hub/build"},
		"only gitsource/hub/build builds kustomizations",
	},
	{
		[]string{"oras.land/oras-go"},
		[]string{"gitsource/charts"},
		"only gitsource/charts asks registries",
	},
	{
		[]string{"helm.sh/helm", "github.com/Masterminds/sprig"},
		[]string{"gitsource/hub/chart"},
		"only gitsource/hub/chart renders charts",
	},
	{
		[]string{"github.com/robfig/cron"},
		[]string{"placement/window"},
		"only placement/window has schedules",
	},
	{
		[]string{"filippo.io/age", "google.golang.org/grpc"},
		[]string{"gitsource/decryption"},
		"only gitsource/decryption has keys and asks key services",
	},
	{
		[]string{"k8s.io/client-go/kubernetes/scheme"},
		[]string{"gitsource/hub/schema"},
		"only gitsource/hub/schema compares manifests with Kubernetes' types",
	},
	{
		[]string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/rest"},
		[]string{"reconciler/member", "reconciler/member/account", "reconciler/member/connection", "reconciler/member/discovery", "reconciler/member/inventory", "reconciler/member/kubeconfig", "reconciler/member/probe", "reconciler/replica", "reconciler/server/access", "reconciler/server/kubeapi", "cmd/gitfleet/..."},
		"only the packages that send requests to members or the management cluster, and cmd for their credentials",
	},
	{
		[]string{"k8s.io/client-go/util/jsonpath"},
		[]string{"cmd/gitfleet/output"},
		"only the command line prints JSONPath",
	},
	{
		[]string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/fluxcd/pkg", "k8s.io/kubectl", "k8s.io/cli-runtime"},
		[]string{"reconciler/member", "reconciler/member/apply", "reconciler/member/account", "reconciler/member/connection", "reconciler/member/discovery", "reconciler/member/inventory", "reconciler/member/kubeconfig", "reconciler/replica", "reconciler/server/access"},
		"only reconciler/member and reconciler/replica send requests to clusters",
	},
	{
		[]string{"github.com/fluxcd/cli-utils"},
		[]string{"reconciler/health"},
		"only reconciler/health derives the health of an object",
	},
	{
		[]string{"github.com/google/cel-go"},
		[]string{"placement/expression"},
		"only placement/expression evaluates CEL, with limited cost",
	},
	{
		[]string{"k8s.io/apiserver"},
		[]string{"reconciler/server", "reconciler/server/access", "reconciler/server/kubeapi"},
		"only reconciler/server serves an API",
	},
	{
		[]string{"github.com/hmarr/codeowners"},
		[]string{"gitsource/forge/owners"},
		"only gitsource/forge/owners reads CODEOWNERS",
	},
	{
		[]string{"go.etcd.io/bbolt"},
		[]string{"reconciler/ledger"},
		"only reconciler/ledger has a database",
	},
	{
		[]string{"github.com/prometheus/client_golang/prometheus/promauto"},
		nil,
		"metrics are registered by the daemon, not when they are created",
	},
	{
		[]string{"github.com/prometheus/client_golang/prometheus/promhttp", "github.com/prometheus/client_golang/prometheus/collectors"},
		[]string{"reconciler/server", "cmd/gitfleet/daemon"},
		"only server and the daemon use Prometheus registries",
	},
	{
		[]string{"github.com/prometheus"},
		[]string{"reconciler", "reconciler/history", "reconciler/member", "reconciler/member/connection", "reconciler/member/series", "reconciler/server", "cmd/gitfleet/daemon"},
		"it is not among the packages with metrics; add it in test/arch/libraries.go",
	},
	{
		[]string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "go.opentelemetry.io/otel/trace"},
		[]string{"reconciler/tracing"},
		"only reconciler/tracing exports traces",
	},
	{
		[]string{"github.com/KimMachineGun/automemlimit"},
		[]string{"cmd/gitfleet/daemon"},
		"only the daemon limits its memory",
	},
	{
		[]string{"github.com/spf13"},
		[]string{"cmd/gitfleet/..."},
		"only cmd reads flags",
	},
}

// in reports whether a file is in PACKAGE, or for PACKAGE/... in it or below it.
func (f *file) in(pattern string) bool {
	pkg, below := strings.CutSuffix(pattern, "/...")
	return f.pkg == pkg || below && under(f.pkg, pkg)
}

func libraries(t *tree, report report) {
	for _, f := range t.files {
		if !f.product() {
			continue
		}
		for _, i := range f.imports {
			n := slices.IndexFunc(libraryRules, func(r libraryRule) bool { return under(i.path, r.libraries...) })
			if n >= 0 && !slices.ContainsFunc(libraryRules[n].packages, f.in) {
				report(f.path, i.line, "%s may not import %s: %s", f.pkg, i.path, libraryRules[n].why)
			}
		}
	}
}
