package replica

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// management returns the kubeconfig of a cluster with a Lease that was released.
func management(t *testing.T) string {
	t.Helper()
	f := simulated.New(simulated.Options{})
	f.Cluster("management")
	dir := t.TempDir()
	if err := f.WriteKubeconfigs(dir); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "management.kubeconfig")
	config, err := clusterConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	nobody, seconds := "", int32(released)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gitfleet"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &nobody, LeaseDurationSeconds: &seconds},
	}
	if _, err := leases.Leases("default").Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

func stand(t *testing.T, kubeconfig, identity string) *Replica {
	t.Helper()
	r, err := New(Config{Kubeconfig: kubeconfig, Namespace: "default", Name: "gitfleet", Identity: identity, Address: "https://" + identity + ":8443", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A run is a replica that runs until it is stopped.
type run struct {
	*Replica
	stop  context.CancelFunc
	leads chan struct{} // closed when it leads
	ended chan error
}

func start(t *testing.T, kubeconfig, identity string) *run {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{stand(t, kubeconfig, identity), cancel, make(chan struct{}), make(chan error, 1)}
	go func() {
		r.ended <- r.Run(ctx, func(ctx context.Context) error {
			close(r.leads)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	t.Cleanup(cancel)
	return r
}

// Only one replica leads at a time. When it is stopped it releases the lease, and the next one
// leads.
func TestOneReplicaLeads(t *testing.T) {
	t.Parallel()
	kubeconfig := management(t)
	one := start(t, kubeconfig, "one")
	<-one.leads
	if !one.Fence().Held() {
		t.Error("the leader may not write")
	}
	two := start(t, kubeconfig, "two")
	for two.Leader().Identity == "" {
		select {
		case <-two.leads:
			t.Fatal("both lead")
		case <-time.After(10 * time.Millisecond):
		}
	}
	if got := two.Leader(); got.Identity != "one" || got.Address != "https://one:8443" || time.Since(got.Since) > time.Minute || two.Fence().Held() {
		t.Errorf("the standby knows %+v as the leader, and may write: %t", got, two.Fence().Held())
	}
	one.stop()
	if err := <-one.ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the leader ended with %v", err)
	}
	if one.Fence().Held() {
		t.Error("a replica that was stopped may write")
	}
	<-two.leads
	if !two.Fence().Held() {
		t.Error("the next leader may not write")
	}
}

// A leader that finds another holder of the lease writes nothing from then on, and stops.
func TestLeaderStepsDownWhenAnotherHasTheLease(t *testing.T) {
	t.Parallel()
	kubeconfig := management(t)
	one := start(t, kubeconfig, "one")
	<-one.leads
	leases, err := coordination.NewForConfig(one.rest)
	if err != nil {
		t.Fatal(err)
	}
	for { // the leader renews it meanwhile
		lease, err := leases.Leases("default").Get(t.Context(), "gitfleet", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		other := "other"
		lease.Spec.HolderIdentity = &other
		if _, err = leases.Leases("default").Update(t.Context(), lease, metav1.UpdateOptions{}); err == nil {
			break
		}
	}
	if err := <-one.ended; !errors.Is(err, ErrLost) {
		t.Errorf("the leader ended with %v, want %v", err, ErrLost)
	}
	if one.Fence().Held() {
		t.Error("a replica that lost the lease may write")
	}
}

// Only the leader writes the Secrets of a ledger.
func TestOnlyTheLeaderWritesTheLedger(t *testing.T) {
	t.Parallel()
	kubeconfig := management(t)
	r := stand(t, kubeconfig, "one")
	secrets, err := r.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	store := ledger.OpenShared(secrets, "one", nil)
	if _, err := store.Load(); !errors.Is(err, ErrFenced) {
		t.Errorf("took over the ledger without leading: %v", err)
	}
	r.fence.open(time.Now().Add(time.Minute))
	l, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	l.SetInForce("c1")
	r.fence.shut()
	if err := store.Save(l); !errors.Is(err, ErrFenced) {
		t.Errorf("saved without leading: %v", err)
	}
	r.fence.open(time.Now().Add(time.Minute))
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	open, err := Unfenced(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	next, err := ledger.OpenShared(open, "two", nil).Load()
	if err != nil || next.InForce() != "c1" {
		t.Errorf("loaded %q, %v, want c1", next.InForce(), err)
	}
	if names, err := secrets.List(); err != nil || len(names) != 2 {
		t.Errorf("the Secrets are %v, %v, want an index and a segment", names, err)
	}
	r.fence.shut()
	l.SetInForce("c2")
	if err := store.Save(l); !errors.Is(err, ErrFenced) {
		t.Errorf("saved after the lease was lost: %v", err)
	}
}

// The fence is open only until a time by both clocks: the monotonic clock does not advance
// while a machine is suspended, and a wall clock that was set back shows an earlier time.
func TestFenceIsHeldByBothClocks(t *testing.T) {
	began := time.Now()
	later := began.Add(time.Hour)
	tests := map[string]struct {
		now  time.Time
		want bool
	}{
		"before":                {began.Add(time.Second), true},
		"after":                 {later, false},
		"only the wall clock":   {later.Round(0), false},
		"exactly at the moment": {began.Add(fenceAfter), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := &Fence{now: func() time.Time { return test.now }}
			if f.Held() {
				t.Error("held before it was opened")
			}
			f.open(began.Add(fenceAfter))
			if got := f.Held(); got != test.want {
				t.Errorf("held: %t, want %t", got, test.want)
			}
			f.shut()
			if f.Held() {
				t.Error("held after it was shut")
			}
		})
	}
}

// counting counts the requests that are sent.
type counting struct{ sent int }

func (c *counting) RoundTrip(*http.Request) (*http.Response, error) {
	c.sent++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// A replica that does not hold the lease can read, but sends nothing that could write.
func TestFencedTransport(t *testing.T) {
	f, next := &Fence{}, &counting{}
	send := func(method string) error {
		req, err := http.NewRequestWithContext(t.Context(), method, "https://member.example", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := f.Wrap(next).RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		reads := method == "GET" || method == "HEAD"
		f.shut()
		before := next.sent
		if err := send(method); reads && err != nil || !reads && !errors.Is(err, ErrFenced) {
			t.Errorf("%s while the fence is shut: %v", method, err)
		}
		if !reads && next.sent != before {
			t.Errorf("%s was sent while the fence is shut", method)
		}
		f.open(time.Now().Add(time.Minute))
		if err := send(method); err != nil {
			t.Errorf("%s while the lease is held: %v", method, err)
		}
	}
}

// While the lease is not held, nothing is sent on a connection to a member, not even the rest
// of a request.
func TestFencedConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	f := &Fence{}
	conn, err := f.Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	f.open(time.Now().Add(time.Minute))
	if _, err := conn.Write([]byte("held")); err != nil {
		t.Error(err)
	}
	f.shut()
	if _, err := conn.Write([]byte("shut")); !errors.Is(err, ErrFenced) {
		t.Errorf("written while the fence is shut: %v", err)
	}
	conn.Close()
	if got, err := io.ReadAll(server); err != nil || string(got) != "held" {
		t.Errorf("the server read %q, %v", got, err)
	}
}
