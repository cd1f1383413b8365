package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// A replica that leads after another one has, with a state directory of its own, has the revisions with their authors and
// clusters, the actions of users and the events from before.
func TestTheHistorySurvivesAFailover(t *testing.T) {
	clusters := simulated.New(simulated.Options{})
	clusters.Cluster("management")
	clusters.Cluster("east")
	kubeconfigs := t.TempDir()
	if err := clusters.WriteKubeconfigs(kubeconfigs); err != nil {
		t.Fatal(err)
	}
	repo, err := githttp.Create(filepath.Join(t.TempDir(), "hub.git"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Change("main", githttp.Change{Message: "Bring the web", Files: map[string]string{
		"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: web\n",
		"member.yaml":    "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\nmetadata:\n  name: east\n",
		"placement.yaml": "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\nmetadata:\n  name: web\n" +
			"spec:\n  resourceSelectors:\n  - {group: \"\", version: v1, kind: Namespace, name: web}\n",
	}}); err != nil {
		t.Fatal(err)
	}
	start := func() (address string, stop func()) {
		cfg := settings.Default()
		cfg.FleetName = "prod"
		cfg.Source.URL, cfg.Source.AllowFile, cfg.Source.Branch = repo.Dir, true, "main"
		cfg.Source.Interval.Duration = time.Second
		cfg.StateDir, cfg.Listen = t.TempDir(), freeAddress(t)
		cfg.Members.KubeconfigDir = kubeconfigs
		cfg.HighAvailability.Lease.Name, cfg.HighAvailability.Lease.Namespace = "gitfleet", "default"
		cfg.HighAvailability.Kubeconfig = filepath.Join(kubeconfigs, "management.kubeconfig")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := serve(ctx, cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), &logTail{}); err != nil {
				t.Error(err)
			}
		}()
		stop = sync.OnceFunc(func() { cancel(); <-ended })
		t.Cleanup(stop)
		return "http://" + cfg.Listen, stop
	}
	has := func(address string, wanted ...string) {
		t.Helper()
		said := ""
		for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			resp, err := http.Get(address + "/history")
			if err != nil {
				continue
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			said = string(body)
			missing := false
			for _, want := range wanted {
				missing = missing || !strings.Contains(said, want)
			}
			if !missing {
				return
			}
		}
		t.Fatalf("the history has not %q:\n%s", wanted, said)
	}
	revision := []string{`"event":"revised"`, `"subject":"Bring the web"`, `"event":"available","commit":`, `"cluster":"east"`}
	first, stopFirst := start()
	has(first, revision...)
	joined := eventsAbout(t, first, "MemberClusterJoined")
	if len(joined) != 1 {
		t.Fatalf("the events that a cluster has joined: %+v", joined)
	}
	order, err := json.Marshal(reconciler.Order{Subject: "cluster/east", Reason: "INC-1", By: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(first+"/actions/suspend", "application/json", bytes.NewReader(order))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("suspend: %s", resp.Status)
	}
	second, _ := start()
	stopFirst()
	has(second, append(revision, `"event":"suspended"`, `"by":"ada"`, "INC-1")...)
	if got := eventsAbout(t, second, "MemberClusterJoined"); !slices.Equal(got, joined) {
		t.Errorf("the events that a cluster has joined are %+v after the failover, and were %+v", got, joined)
	}
}

// eventsAbout returns the events with a reason in the report of a daemon.
func eventsAbout(t *testing.T, address, reason string) []status.Event {
	t.Helper()
	resp, err := http.Get(address + "/report")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var report struct{ Events []status.Event }
	if err := json.NewDecoder(resp.Body).Decode(&report); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(report.Events, func(e status.Event) bool { return e.Reason != reason })
}
