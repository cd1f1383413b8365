package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// The file of a large ledger does not stay in the memory of the process, neither after a save nor after it was read.
func TestPagesOfTheFileAreReleased(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger.db")
	s, l, key := open(t, dir), New(), api.PlacementKey{Name: "web"}
	l.SetPlacement(key, Placement{})
	for i := range 2 * maxRecords {
		l.Bind(key, placement.Binding{Cluster: fmt.Sprintf("c%04d", i), Reason: strings.Repeat("because ", 100)})
	}
	for l.Unsaved() {
		if err := s.Save(l); err != nil {
			t.Fatal(err)
		}
	}
	const few = 256 // KiB
	if info, err := os.Stat(path); err != nil || info.Size() < 8*few<<10 {
		t.Fatalf("the file is too small for this test: %v, %v", info, err)
	}
	if n := mapped(t, path); n > few {
		t.Errorf("%d KiB are resident after a save", n)
	}
	if _, err := s.Load(); err != nil {
		t.Fatal(err)
	}
	if n := mapped(t, path); n > few {
		t.Errorf("%d KiB are resident after the ledger was read", n)
	}
}

// mapped returns how much of a file is mapped and resident, in KiB.
func mapped(t *testing.T, path string) (kibibytes int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	ofFile, mapped := false, false
	for line := range strings.Lines(string(text)) {
		if name, size, found := strings.Cut(strings.TrimSpace(line), ":"); found && name == "Rss" && ofFile {
			n := 0
			if _, err := fmt.Sscanf(size, "%d kB", &n); err != nil {
				t.Fatal(err)
			}
			kibibytes += n
		} else if strings.Contains(line, "-") && strings.Contains(line, " r") {
			ofFile = strings.Contains(line, path)
			mapped = mapped || ofFile
		}
	}
	if !mapped {
		t.Fatalf("%s is not mapped", path)
	}
	return kibibytes
}
