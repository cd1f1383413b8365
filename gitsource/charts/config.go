package charts

import (
	"context"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hostlimit"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// Config configures a cache.
type Config struct {
	// Dir is the directory of the cache, which is created if necessary.
	Dir string
	// Hosts are the credentials for servers.
	Hosts remote.Hosts
	// Getenv returns the environment variables that credentials name; nil refuses them.
	Getenv func(string) string
	// Limits limit what a server can cause.
	Limits Limits
	// Fetches limit what fetches from one server take, and may be shared with what else is fetched from there.
	Fetches *hostlimit.Hosts
}

// Limits limit one chart. All fields must be set.
type Limits struct {
	// ArchiveBytes limits a packed chart, and UnpackedBytes and Files what is in it.
	ArchiveBytes, UnpackedBytes int64
	Files                       int
	// CacheBytes limits all archives in the cache.
	CacheBytes int64
	// Time limits all that is asked of one server for one chart.
	Time time.Duration
}

// An archive is a packed chart in a temporary file of the cache. Whoever has it removes it.
type archive struct{ path, digest string }

// A source is a registry or a chart repository. Its errors have no credentials.
type source interface {
	// archive returns the archive of a chart that is locked.
	archive(ctx context.Context, chart lockfile.Chart) (archive, error)
	// find returns the newest version of a chart, and its archive.
	find(ctx context.Context, asked lockfile.Request) (lockfile.Chart, archive, error)
}
