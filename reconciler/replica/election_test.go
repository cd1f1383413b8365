package replica

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A fakeLease is a Lease in memory that the replica "one" accesses. If its record is nil, the
// Lease does not exist.
type fakeLease struct {
	mu       sync.Mutex
	record   *resourcelock.LeaderElectionRecord
	renewals int
}

func (f *fakeLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.record == nil {
		return nil, nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), "gitfleet")
	}
	record := *f.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (f *fakeLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return f.Update(ctx, record)
}

func (f *fakeLease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record = &record
	f.renewals++
	return nil
}

func (f *fakeLease) RecordEvent(string) {}
func (f *fakeLease) Identity() string   { return "one" }
func (f *fakeLease) Describe() string   { return "default/gitfleet" }

// onLease returns the replica "one".
func onLease(f *fakeLease) *Replica {
	r := &Replica{cfg: Config{Identity: "one", Name: "gitfleet", Log: slog.New(slog.DiscardHandler)}, fence: &Fence{}, lost: make(chan struct{}, 1)}
	r.lock = &lock{Interface: f, fence: r.fence, deposed: r.Depose}
	return r
}

// A replica leads only once no other one can write any more, even if somebody has deleted the
// Lease or cleared its holder.
func TestLeadingWaitsForTheFormerLeader(t *testing.T) {
	tests := map[string]struct {
		record   *resourcelock.LeaderElectionRecord
		min, max time.Duration
	}{
		"missing":    {nil, fenceAfter, fenceAfter + time.Second},
		"cleared":    {&resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 10}, fenceAfter, fenceAfter + time.Second},
		"given back": {&resourcelock.LeaderElectionRecord{LeaseDurationSeconds: released}, 0, time.Second},
		"expired":    {&resourcelock.LeaderElectionRecord{HolderIdentity: "two", LeaseDurationSeconds: 10}, leaseDuration, leaseDuration + 4*time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if test.record != nil {
					test.record.RenewTime = metav1.Now()
				}
				began, led := time.Now(), false
				err := onLease(&fakeLease{record: test.record}).Run(t.Context(), func(context.Context) error {
					led = true
					if waited := time.Since(began); waited < test.min || waited > test.max {
						t.Errorf("leads after %s, want %s to %s", waited, test.min, test.max)
					}
					return nil
				})
				if err != nil || !led {
					t.Errorf("led: %t, %v", led, err)
				}
			})
		})
	}
}

// A replica that is stopped while it waits for a former leader does not release the Lease,
// since the next one would not wait.
func TestLeaseIsNotGivenBackBeforeLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), fenceAfter/2)
		defer cancel()
		lease := &fakeLease{}
		err := onLease(lease).Run(ctx, func(context.Context) error {
			t.Error("leads while another replica may write")
			return nil
		})
		if err != nil || lease.record.HolderIdentity != "one" {
			t.Errorf("ended with %v, and the Lease is held by %q", err, lease.record.HolderIdentity)
		}
	})
}

// A replica that was deposed writes nothing and does not change the Lease, however long it
// takes to stop.
func TestDeposedReplicaRenewsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &fakeLease{record: &resourcelock.LeaderElectionRecord{LeaseDurationSeconds: released}}
		r := onLease(lease)
		err := r.Run(t.Context(), func(ctx context.Context) error {
			time.Sleep(3 * retryPeriod)
			if !r.Fence().Held() {
				t.Error("the leader may not write")
			}
			r.Depose()
			<-ctx.Done()
			synctest.Wait()
			before := lease.renewals
			for range 10 {
				time.Sleep(retryPeriod)
				if r.Fence().Held() {
					t.Error("a replica that was deposed may write")
				}
			}
			if lease.renewals != before {
				t.Errorf("it renewed the Lease %d times", lease.renewals-before)
			}
			return nil
		})
		if !errors.Is(err, ErrLost) {
			t.Errorf("ended with %v, want %v", err, ErrLost)
		}
	})
}
