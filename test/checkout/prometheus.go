package checkout

import (
	"context"
	"path/filepath"
)

// prometheusTags leave service discovery out of Prometheus, which is most of what
// there is to compile.
const prometheusTags = "remove_all_sd"

// Prometheus builds Prometheus and its promtool, or finds them up to date, and returns
// their paths. The first build takes minutes, as Go's build cache is filled.
func Prometheus(ctx context.Context) (prometheus, promtool string, err error) {
	root, err := Root()
	if err != nil {
		return "", "", err
	}
	dir := filepath.Join(root, "build")
	unlock, err := lock(filepath.Join(dir, "prometheus.lock"))
	if err != nil {
		return "", "", err
	}
	defer unlock()
	return filepath.Join(dir, "prometheus"), filepath.Join(dir, "promtool"), Build(ctx, filepath.Join(root, "test", "prometheus"),
		[]string{"GOWORK=off", "CGO_ENABLED=0"}, dir+string(filepath.Separator), "-trimpath", "-tags="+prometheusTags, "-ldflags=-s -w", "tool")
}
