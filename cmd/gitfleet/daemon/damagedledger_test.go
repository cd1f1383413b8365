package daemon

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/replica"
	"github.com/gitfleet/gitfleet/test/simulated"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// stateReset runs gitfleet state reset, and returns its output and error.
func stateReset(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := NewState()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"reset"}, args...))
	cmd.SetOut(&out)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		fmt.Fprint(&out, "error: ", err)
	}
	return out.String()
}

// A damaged ledger ends the start with an error that names the remedies, unless the configuration says
// to move it aside.
func TestStartWithADamagedLedger(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger", "ledger.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	damage := []byte("this is no database")
	if err := os.WriteFile(path, damage, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := settings.Default()
	cfg.StateDir = dir
	var log bytes.Buffer
	start := func() (*candidate, *metrics, error) {
		m := newMetrics(&recorder{}, nil)
		c, err := newCandidate(cfg, m, slog.New(slog.NewTextHandler(&log, nil)))
		return c, m, err
	}
	if _, _, err := start(); !ledger.IsDamaged(err) || !strings.Contains(err.Error(), "gitfleet state reset") || !strings.Contains(err.Error(), "resetDamagedState") {
		t.Errorf("without the setting: %v", err)
	}
	cfg.ResetDamagedState = true
	for range 2 { // the second time there is nothing to move
		c, _, err := start()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	aside, err := filepath.Glob(path + ".aside-*")
	if err != nil || len(aside) != 1 || strings.Count(log.String(), "damaged ledger moved aside") != 1 || !strings.Contains(log.String(), aside[0]) {
		t.Fatalf("moved aside: %v, %v\n%s", aside, err, log.String())
	}
	if kept, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(kept, damage) {
		t.Errorf("kept %q, %v", kept, err)
	}
	config := tempfile.Write(t, "gitfleet.yaml", "stateDir: "+dir+"\n")
	for _, step := range []struct {
		args []string
		says string
	}{
		{nil, "error: say with --state-dir"},
		{[]string{"--state-dir", t.TempDir()}, "error: there is no ledger in "},
		{[]string{"--state-dir", dir}, "error: the ledger is not damaged"},
		{[]string{"--config", config, "--force"}, "moved aside to " + path + ".aside-"},
	} {
		if said := stateReset(t, step.args...); !strings.HasPrefix(said, step.says) {
			t.Errorf("%v: %s; want %s", step.args, said, step.says)
		}
	}
}

// The damaged ledger of replicas is reset by the command, and at the start with the setting, but not
// while a replica leads.
func TestResetOfTheLedgerOfReplicas(t *testing.T) {
	server := httptest.NewServer(simulated.Reviewing(simulated.New(simulated.Options{}).Cluster("management"), func(string, string) bool { return true }))
	defer server.Close()
	kubeconfig := tempfile.Write(t, "kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x}}]\nclusters: [{name: x, cluster: {server: \""+server.URL+"\"}}]\n")
	config := tempfile.Write(t, "gitfleet.yaml", "highAvailability: {lease: {name: gitfleet, namespace: default}, kubeconfig: "+kubeconfig+"}\n")
	cfg, err := settings.Read(config, pflag.NewFlagSet("", pflag.ContinueOnError))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	secrets, err := replica.Unfenced(cfg.ReplicaConfig("one", log))
	if err != nil {
		t.Fatal(err)
	}
	damage := func() {
		store := ledger.OpenShared(secrets, "one", nil)
		l, err := store.Load()
		if err != nil {
			t.Fatal(err)
		}
		l.SetPlacement(api.PlacementKey{Name: "web"}, ledger.Placement{Generation: 2})
		if err := store.Save(l); err != nil {
			t.Fatal(err)
		}
		if said := stateReset(t, "--config", config); !strings.Contains(said, "not damaged") {
			t.Errorf("a good ledger: %s", said)
		}
		if err := secrets.Delete("index"); err != nil {
			t.Fatal(err)
		}
	}
	if said := stateReset(t, "--config", config); said != "error: there is no ledger in the management cluster" {
		t.Errorf("before the first start: %s", said)
	}
	damage()
	if said := stateReset(t, "--config", config); !strings.HasPrefix(said, "moved aside to Secrets whose names begin with gitfleet-ledger-aside-") {
		t.Errorf("a damaged ledger: %s", said)
	}
	damage()
	m := newMetrics(&recorder{}, nil)
	c, err := newCandidate(cfg, m, log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.fleet(t.Context()); !ledger.IsDamaged(err) {
		t.Errorf("a start without the setting: %v", err)
	}
	c.reset.enabled = true
	lease := fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"gitfleet","namespace":"default"},"spec":{"holderIdentity":"other","renewTime":%q}}`,
		time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	path := server.URL + "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	if resp, err := http.Post(path, "application/json", strings.NewReader(lease)); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatal(resp, err)
	}
	if _, err := c.fleet(t.Context()); !ledger.IsDamaged(err) || !strings.Contains(err.Error(), "other leads") {
		t.Errorf("a start while a replica leads: %v", err)
	}
	if said := stateReset(t, "--config", config, "--force"); !strings.HasPrefix(said, "error: other leads") {
		t.Errorf("while a replica leads: %s", said)
	}
	released, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, path+"/gitfleet", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(released); err != nil {
		t.Fatal(err)
	}
	if fleet, err := c.fleet(t.Context()); err != nil || fleet != (protocol.Fleet{}) {
		t.Errorf("a start with the setting: %+v, %v", fleet, err)
	}
}
