package limit

import (
	"testing"
	"time"
)

func TestWithDefaults(t *testing.T) {
	want := Limits{
		Files: 50_000, FileSize: 4 << 20, Documents: 1_000, AliasExpansion: 100, Depth: 100, Objects: 100_000,
		CommitSize: 512 << 20, Builds: 5_000, BuildInput: 64 << 20, BuildTime: time.Minute, BuildOutput: 10 << 20,
	}
	if got := (Limits{}).WithDefaults(); got != want {
		t.Errorf("defaults %+v, want %+v", got, want)
	}
	want.Depth = 3
	if got := (Limits{Depth: 3}).WithDefaults(); got != want {
		t.Errorf("a depth of 3 became %+v", got)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 1025: "1025 bytes", 3 << 20: "3 MiB", 1536 << 10: "1536 KiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
