package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// A backup can be exported from a running daemon, and imported into the directory of another
// one. Existing state is replaced only on request.
func TestStateIsExportedFromADaemonAndImported(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	store, err := ledger.Open(filepath.Join(dir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l := ledger.New()
	l.SetPlacement(api.PlacementKey{Name: "web"}, ledger.Placement{Generation: 2})
	l.Bind(api.PlacementKey{Name: "web"}, placement.Binding{Cluster: "east", Assigned: placement.Revision{Commit: "abc", Hash: "def"}, AssignedAt: time.Unix(1e9, 0).UTC()})
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	daemon := server.New(nil)
	daemon.Mount("GET /state", server.StateHandler(store.Export))
	web := httptest.NewServer(daemon.Handler())
	defer web.Close()

	do := func(want exit.Code, says string, args ...string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := run(append([]string{"state"}, args...), &out, &errOut); code != want || !strings.Contains(errOut.String(), says) {
			t.Fatalf("%v: exit code %d: %s; want %d and %q", args, code, errOut.String(), want, says)
		}
		return out.String()
	}
	file := filepath.Join(t.TempDir(), "state.jsonl")
	do(exit.Failed, "another gitfleet uses this state directory", "export", "--state-dir", dir)
	do(exit.Failed, "no state directory", "export", "--state-dir", other)
	do(exit.OK, "", "export", "--server", web.URL, "-f", file)
	backup, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(backup), `"record":"binding","placement":"crp/web","cluster":"east"`) {
		t.Fatalf("the backup is %v\n%s", err, backup)
	}
	do(exit.Failed, "--state-dir", "import", file)
	if out := do(exit.OK, "", "import", file, "--state-dir", other); !strings.HasPrefix(out, other+" has the state of the backup") {
		t.Errorf("after an import it says %q", out)
	}
	newer := filepath.Join(t.TempDir(), "newer.jsonl")
	if err := os.WriteFile(newer, bytes.Replace(backup, []byte(`"schema":`), []byte(`"schema":9`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	do(exit.Failed, "written by a newer gitfleet", "import", newer, "--state-dir", other, "--force")
	do(exit.Failed, "another gitfleet uses this state directory", "import", file, "--state-dir", dir, "--force")
	again := do(exit.OK, "", "export", "--state-dir", other)
	if _, a, _ := strings.Cut(again, "\n"); !strings.HasSuffix(string(backup), a) {
		t.Errorf("what was imported is exported as\n%s\nand was\n%s", again, backup)
	}
	do(exit.Failed, "is not empty", "import", file, "--state-dir", other)
	do(exit.OK, "", "import", file, "--state-dir", other, "--force")
	do(exit.Failed, "use --state-dir", "export", "--server", "http://127.0.0.1:1")
}
