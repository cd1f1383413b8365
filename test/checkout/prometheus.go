package checkout

import (
	"context"
	"path/filepath"
)

// prometheusTags build Prometheus without service discovery, which is most of its code.
const prometheusTags = "remove_all_sd"

// Prometheus builds Prometheus and promtool, unless they are up to date, and returns their
// paths. The first build takes minutes and fills Go's build cache.
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
