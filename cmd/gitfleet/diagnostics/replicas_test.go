package diagnostics

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/replica"
	"github.com/gitfleet/gitfleet/test/simulated"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// managementCluster returns a configuration of replicas in an empty cluster, where their
// account has the permissions that allowed reports.
func managementCluster(t *testing.T, allowed func(verb, resource string) bool) settings.Config {
	t.Helper()
	server := httptest.NewServer(simulated.Reviewing(simulated.New(simulated.Options{}).Cluster("management"), allowed))
	t.Cleanup(server.Close)
	cfg := settings.Default()
	cfg.HighAvailability.Lease = settings.LeaseConfig{Name: "gitfleet", Namespace: "default"}
	cfg.HighAvailability.Kubeconfig = tempfile.Write(t, "kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x}}]\nclusters: [{name: x, cluster: {server: \""+server.URL+"\"}}]\n")
	return cfg
}

// Doctor checks what replicas need in the management cluster: their permissions, and whether
// the ledger can be read.
func TestDoctorOfReplicas(t *testing.T) {
	everything := func(string, string) bool { return true }
	if checks := checkReplicas(t.Context(), settings.Default(), 0); checks != nil {
		t.Errorf("without highAvailability: %+v", checks)
	}
	denied := checkReplicas(t.Context(), managementCluster(t, func(verb, _ string) bool { return verb != "update" }), 0)
	if state, message := found(denied, "lease"); state != checkFail || message != "permissions are missing: update leases.coordination.k8s.io; update secrets" || denied[0].Fix == "" {
		t.Errorf("without permission to update: %+v", denied)
	}
	cfg := managementCluster(t, everything)
	for _, name := range []string{"lease", "ledger"} {
		if state, message := found(checkReplicas(t.Context(), cfg, 0), name); state != checkOK || !strings.Contains(message, "does not exist yet") {
			t.Errorf("before the first start %s is %s: %s", name, state, message)
		}
	}
	secrets, err := replica.Unfenced(cfg.ReplicaConfig("one", slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	store := ledger.OpenShared(secrets, "one", nil)
	l, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	l.SetPlacement(api.PlacementKey{Name: "web"}, ledger.Placement{Generation: 2})
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	if state, message := found(checkReplicas(t.Context(), cfg, 0), "ledger"); state != checkOK || message != "1 placement in 2 Secrets, 1Ki, the largest 1Ki" {
		t.Errorf("the ledger is %s: %s", state, message)
	}
	if err := secrets.Delete("index"); err != nil {
		t.Fatal(err)
	}
	damaged := checkReplicas(t.Context(), cfg, 0)
	if state, message := found(damaged, "ledger"); state != checkFail || !strings.Contains(message, "its index is missing") || damaged[len(damaged)-1].Fix != ledger.Remedy {
		t.Errorf("a damaged ledger: %+v", damaged)
	}
}

// Doctor says who leads, whether that is up to date, and whether clocks differ.
func TestDoctorSaysWhoLeads(t *testing.T) {
	for name, test := range map[string]struct {
		found replica.Inspection
		want  check
	}{
		"leads":       {replica.Inspection{Exists: true, Holder: "a", Renewed: true, Age: time.Second}, check{State: checkOK, Message: "a leads, all permissions granted"}},
		"nobody":      {replica.Inspection{Exists: true}, check{State: checkWarn, Message: "nobody holds it: no replica leads"}},
		"expired":     {replica.Inspection{Exists: true, Holder: "a", Age: time.Hour}, check{State: checkWarn, Message: "a holds it and does not renew it (last 1h0m0s ago): no replica leads"}},
		"wrong clock": {replica.Inspection{Exists: true, Holder: "a", Renewed: true, Age: time.Minute}, check{State: checkWarn, Message: "a leads; its clock differs by -1m0s from the management cluster's"}},
	} {
		got := leaseCheck("default/gitfleet", test.found)
		if got.State != test.want.State || got.Message != test.want.Message || (got.State == checkOK) != (got.Fix == "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
