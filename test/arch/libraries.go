package arch

import (
	"slices"
	"strings"
)

// owners say which rooms may import which libraries of others. The first row
// that fits a path counts; a library in no row is free to all that may have it.
// ROOM/... is a room and all below it.
var owners = []struct {
	libraries []string
	rooms     []string
	why       string
}{
	{
		[]string{"github.com/go-git"},
		[]string{"gitsource", "gitsource/objects", "gitsource/remote"},
		"only gitsource, its object store and its remotes know Git",
	},
	{
		[]string{"sigs.k8s.io/kustomize"},
		[]string{"gitsource/hub/build"},
		"only gitsource/hub/build builds kustomizations",
	},
	{
		[]string{"k8s.io/client-go/kubernetes/scheme"},
		[]string{"gitsource/hub/schema"},
		"only gitsource/hub/schema compares manifests with the kinds of Kubernetes",
	},
	{
		[]string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/rest"},
		[]string{"reconciler/member", "reconciler/member/account", "reconciler/member/connection", "reconciler/member/discovery", "reconciler/member/inventory", "reconciler/member/kubeconfig", "reconciler/member/probe", "reconciler/replica", "reconciler/server/access", "reconciler/server/kubeapi", "cmd/gitfleet/..."},
		"only members and the management cluster are spoken to, and cmd hands over their credentials",
	},
	{
		[]string{"k8s.io/client-go/util/jsonpath"},
		[]string{"cmd/gitfleet/output"},
		"it is for what a person asks on the command line",
	},
	{
		[]string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/fluxcd/pkg", "k8s.io/kubectl", "k8s.io/cli-runtime"},
		[]string{"reconciler/member", "reconciler/member/account", "reconciler/member/connection", "reconciler/member/content", "reconciler/member/discovery", "reconciler/member/inventory", "reconciler/member/kubeconfig", "reconciler/member/probe", "reconciler/replica", "reconciler/server/access"},
		"only reconciler/member speaks to clusters, and reconciler/replica to the one with the lease",
	},
	{
		[]string{"github.com/fluxcd/cli-utils"},
		[]string{"reconciler/health"},
		"only reconciler/health judges objects",
	},
	{
		[]string{"github.com/google/cel-go"},
		[]string{"placement/expression"},
		"only placement/expression knows what may be asked, and at what cost",
	},
	{
		[]string{"k8s.io/apiserver"},
		[]string{"reconciler/server", "reconciler/server/access", "reconciler/server/kubeapi"},
		"only reconciler/server serves an API",
	},
	{
		[]string{"go.etcd.io/bbolt"},
		[]string{"reconciler/ledger"},
		"only reconciler/ledger stores anything",
	},
	{
		[]string{"github.com/prometheus/client_golang/prometheus/promauto"},
		nil,
		"metrics belong to no registry until the daemon registers them",
	},
	{
		[]string{"github.com/prometheus/client_golang/prometheus/promhttp", "github.com/prometheus/client_golang/prometheus/collectors"},
		[]string{"reconciler/server", "cmd/gitfleet/daemon"},
		"only server and the daemon know Prometheus registries",
	},
	{
		[]string{"github.com/prometheus"},
		[]string{"gitsource", "gitsource/webhook", "reconciler", "reconciler/history", "reconciler/member", "reconciler/member/connection", "reconciler/member/probe", "reconciler/member/watch", "reconciler/proposal", "reconciler/server", "cmd/gitfleet/daemon"},
		"only rooms that do I/O count anything",
	},
	{
		[]string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "go.opentelemetry.io/otel/trace"},
		[]string{"reconciler/tracing"},
		"only reconciler/tracing sends traces",
	},
	{
		[]string{"github.com/spf13"},
		[]string{"cmd/gitfleet/..."},
		"only cmd reads flags",
	},
}

// in reports whether a file is in ROOM, or with ROOM/... in it or below it.
func (f *file) in(rooms string) bool {
	room, below := strings.CutSuffix(rooms, "/...")
	return f.room == room || below && under(f.room, room)
}

func libraries(t *tree, report report) {
	for _, f := range t.files {
		if !f.product() {
			continue
		}
		for _, i := range f.imports {
			for _, o := range owners {
				if !under(i.path, o.libraries...) {
					continue
				}
				if !slices.ContainsFunc(o.rooms, f.in) {
					report(f.path, i.line, "%s may not import %s: %s", f.room, i.path, o.why)
				}
				break
			}
		}
	}
}
