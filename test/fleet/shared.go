package fleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the one fleet of a test binary.
var shared struct {
	options *Options
	once    sync.Once
	fleet   *Fleet
	err     error
}

// Main runs the tests of a package and exits. It is called in TestMain. The fleet starts with
// the first call of Shared, and ends after the last test.
func Main(m *testing.M, o Options) {
	flag.Parse()
	shared.options = &o
	code := m.Run()
	if shared.fleet != nil {
		if err := shared.fleet.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "fleet:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Shared returns the fleet that all tests of the package share. It skips the test with -short.
// Each test uses a Namespace of its own, and starts the clusters again that it stops.
func Shared(t testing.TB) *Fleet {
	t.Helper()
	if testing.Short() {
		t.Skip("needs API servers; run without -short")
	}
	shared.once.Do(func() {
		if shared.options == nil {
			shared.err = errors.New("TestMain does not call fleet.Main")
			return
		}
		shared.fleet, shared.err = Start(context.Background(), *shared.options)
	})
	if shared.err != nil {
		t.Fatalf("fleet: %v", shared.err)
	}
	return shared.fleet
}
