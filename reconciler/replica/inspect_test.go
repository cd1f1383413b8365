package replica

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/gitfleet/gitfleet/test/simulated"
)

// inspector returns an Inspector of an empty cluster, whose account has the permissions that
// allowed reports, and a client for its Leases.
func inspector(t *testing.T, allowed func(verb, resource string) bool) (Inspector, coordination.LeaseInterface) {
	t.Helper()
	server := httptest.NewServer(simulated.Reviewing(simulated.New(simulated.Options{}).Cluster("management"), allowed))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x}}]\nclusters: [{name: x, cluster: {server: \"" + server.URL + "\"}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := clusterConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return Inspector{Config: Config{Kubeconfig: kubeconfig, Namespace: "default", Name: "gitfleet"}, Now: time.Now, Watch: time.Millisecond}, leases.Leases("default")
}

// All missing permissions are listed at once.
func TestInspectListsMissingPermissions(t *testing.T) {
	t.Parallel()
	i, _ := inspector(t, func(verb, resource string) bool { return verb == "get" || resource == "secrets" && verb == "create" })
	found, err := i.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"create leases.coordination.k8s.io", "update leases.coordination.k8s.io", "list secrets", "update secrets", "delete secrets"}
	if !slices.Equal(found.Missing, want) {
		t.Errorf("missing are %v, want %v", found.Missing, want)
	}
}

// A Lease counts as renewed if its time is plausible, or if it changes while it is watched.
func TestInspectWatchesALeaseThatSeemsExpired(t *testing.T) {
	t.Parallel()
	i, leases := inspector(t, func(string, string) bool { return true })
	found, err := i.Inspect(t.Context())
	if err != nil || found.Exists {
		t.Errorf("without a Lease: %+v, %v", found, err)
	}
	write := func(holder string, renewed time.Time) error {
		at := metav1.NewMicroTime(renewed)
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "gitfleet"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at}}
		if old, err := leases.Get(t.Context(), "gitfleet", metav1.GetOptions{}); err == nil {
			lease.ResourceVersion = old.ResourceVersion
			_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
			return err
		}
		_, err := leases.Create(t.Context(), lease, metav1.CreateOptions{})
		return err
	}
	for name, test := range map[string]struct {
		holder  string
		age     time.Duration
		renewed bool
	}{
		"cleared": {"", 0, false},
		"renewed": {"one", time.Second, true},
		"expired": {"one", time.Hour, false},
		"ahead":   {"one", -time.Hour, false},
	} {
		if err := write(test.holder, time.Now().Add(-test.age)); err != nil {
			t.Fatal(err)
		}
		found, err := i.Inspect(t.Context())
		if err != nil || !found.Exists || found.Holder != test.holder || found.Renewed != test.renewed || (found.Age-test.age).Abs() > time.Minute {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	if err := write("one", time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	i.Watch = time.Minute
	reads := 0
	i.Now = func() time.Time { // the leader renews the Lease between two reads
		if reads++; reads == 1 {
			if err := write("one", time.Now().Add(-time.Hour)); err != nil {
				t.Error(err)
			}
		}
		return time.Now()
	}
	found, err = i.Inspect(t.Context())
	if err != nil || !found.Renewed || found.Age.Abs() < 59*time.Minute {
		t.Errorf("of a leader with a wrong clock: %+v, %v", found, err)
	}
}
