package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/replica"
	"github.com/gitfleet/gitfleet/test/simulated"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// A backup is imported beside the Lease, where the next leader finds it. Existing data is
// replaced only on request.
func TestStateIsImportedForReplicas(t *testing.T) {
	f := simulated.New(simulated.Options{})
	f.Cluster("management")
	dir := t.TempDir()
	if err := f.WriteKubeconfigs(dir); err != nil {
		t.Fatal(err)
	}
	store, err := ledger.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l := ledger.New()
	l.SetPlacement(api.PlacementKey{Name: "web"}, ledger.Placement{Generation: 2})
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	backup, err := os.Create(filepath.Join(t.TempDir(), "state.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Close()
	if err := store.Export(backup); err != nil {
		t.Fatal(err)
	}
	config := tempfile.Write(t, "gitfleet.yaml", "highAvailability: {lease: {name: gitfleet, namespace: default}, kubeconfig: "+filepath.Join(dir, "management.kubeconfig")+"}\n")
	for _, step := range []struct {
		args []string
		says string
	}{
		{nil, "the management cluster has the state of the backup"},
		{nil, "is not empty: it has 1 records; with --force they are replaced"},
		{[]string{"--force"}, "the management cluster has the state of the backup"},
		{[]string{"--state-dir", dir}, "or with --config which replicas"},
	} {
		var out bytes.Buffer
		args := append([]string{"import", backup.Name(), "--config", config}, step.args...)
		cmd := NewState()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), step.says) {
			t.Errorf("%v: %s; want %q", step.args, out.String(), step.says)
		}
	}
	cfg, err := settings.Read(config, pflag.NewFlagSet("", pflag.ContinueOnError))
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := newCandidate(cfg, newMetrics(&recorder{}, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := candidate.shared.Read(); err != nil || l.Placement(api.PlacementKey{Name: "web"}) == nil {
		t.Errorf("the replicas find %v, %v", l, err)
	}
	if err := candidate.checkLeader(); err == nil || !strings.Contains(err.Error(), "none leads yet") {
		t.Errorf("a replica that does not lead answers: %v", err)
	}
	if err := candidate.mayWrite(); err == nil {
		t.Error("a replica that does not lead may write")
	}
	branches := fencedBranches{nil, candidate.mayWrite}
	if _, err := branches.Publish(t.Context(), gitsource.BranchCommit{}); !errors.Is(err, replica.ErrFenced) {
		t.Errorf("a replica that does not lead pushes: %v", err)
	}
	if err := branches.Remove(t.Context(), "branch", ""); !errors.Is(err, replica.ErrFenced) {
		t.Errorf("a replica that does not lead removes a branch: %v", err)
	}
}

// A replica counts as the leader only while its fence is open: after that another one may lead, even if this one is
// still stopping. A daemon without other replicas always leads.
func TestLeadsForCertain(t *testing.T) {
	f := simulated.New(simulated.Options{})
	f.Cluster("management")
	dir := t.TempDir()
	if err := f.WriteKubeconfigs(dir); err != nil {
		t.Fatal(err)
	}
	r, err := replica.New(replica.Config{
		Kubeconfig: filepath.Join(dir, "management.kubeconfig"), Namespace: "default", Name: "gitfleet", Identity: "one", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*candidate{{}, {replica: r}} {
		if c.leadsForCertain() {
			t.Error("leads before it was started")
		}
		c.leads.Store(true)
		if alone := c.replica == nil; c.leadsForCertain() != alone {
			t.Errorf("alone %t: leads %t", alone, !alone)
		}
	}
}
