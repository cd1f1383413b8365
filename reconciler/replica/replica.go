// Package replica elects the leader among several instances of gitfleet.
//
// A Lease in a management cluster says who leads. Secrets beside it have the ledger, so that
// the next leader continues where the last one stopped. A Fence refuses every write of a
// replica that does not certainly hold the lease, since a process that was stopped may learn
// late that another one leads.
package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Another replica takes over when the lease was not renewed for leaseDuration. The leader
// renews it every retryPeriod, gives up after renewDeadline without success, and writes nothing
// once fenceAfter has passed since it sent the last successful renewal.
const (
	leaseDuration = 10 * time.Second
	renewDeadline = 7 * time.Second
	fenceAfter    = 8 * time.Second
	retryPeriod   = time.Second
	// leaseTimeout limits each request for the lease, so that there is time for more than one
	// before the deadline.
	leaseTimeout = 2 * time.Second
)

// released is the duration in seconds in a Lease that its last holder has released.
const released = 1

// ErrLost is returned by a replica that has led and does not lead any more.
var ErrLost = errors.New("another replica may lead: the lease was lost")

// Config configures a replica. All fields except Kubeconfig must be set.
type Config struct {
	// Kubeconfig is the kubeconfig of the management cluster; empty for the cluster in which
	// gitfleet runs. A Replica reads the file again when it changes.
	Kubeconfig string
	// Namespace and Name are those of the Lease. The Secrets of the ledger are in the same
	// namespace, and their names begin with Name.
	Namespace, Name string
	// Identity identifies this process, and Address is the URL at which it serves requests. Other replicas report both. If the
	// URL has no host, the address of this machine is used. If Address is empty, none is reported.
	Identity, Address string
	Log               *slog.Logger
}

// A Replica takes part in the election.
type Replica struct {
	cfg   Config
	rest  *rest.Config
	fence *Fence
	lock  *lock
	// own is the address of this replica.
	own string
	// leader is the last observed holder of the lease.
	leader atomic.Pointer[Leader]
	// lost receives one value when another replica is found to have taken over.
	lost chan struct{}
}

// New returns a replica that does not take part in the election yet. It sends no request.
func New(cfg Config) (*Replica, error) {
	config, err := clusterConfig(cfg.Kubeconfig)
	if err != nil {
		return nil, err
	}
	lease := leaseConfig(config)
	if cfg.Kubeconfig != "" { // in a cluster, client-go reads the token again
		file, err := openKubeconfig(cfg.Kubeconfig, config.Host, cfg.Log)
		if err != nil {
			return nil, err
		}
		if config, err = file.client(config); err != nil {
			return nil, err
		}
		if lease, err = file.client(lease); err != nil {
			return nil, err
		}
	}
	leases, err := coordination.NewForConfig(lease)
	if err != nil {
		return nil, fmt.Errorf("use the credentials of the management cluster: %w", err)
	}
	r := &Replica{cfg: cfg, rest: config, fence: &Fence{}, lost: make(chan struct{}, 1), own: ownAddress(cfg.Address, config.Host)}
	r.lock = &lock{fence: r.fence, deposed: r.Depose, Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: cfg.Namespace, Name: cfg.Name}, Client: addressedLeases{leases, r.address, &r.leader},
		LockConfig: resourcelock.ResourceLockConfig{Identity: cfg.Identity},
	}}
	return r, nil
}

// clusterConfig returns the client configuration of the management cluster.
func clusterConfig(kubeconfig string) (config *rest.Config, err error) {
	if kubeconfig != "" {
		if config, err = loadKubeconfig(kubeconfig); err != nil {
			return nil, fmt.Errorf("read the kubeconfig of the management cluster: %w", err)
		}
	} else if config, err = rest.InClusterConfig(); err != nil {
		return nil, fmt.Errorf("%w; set highAvailability.kubeconfig where gitfleet runs in no cluster", err)
	}
	config.UserAgent, config.QPS, config.ContentType = "gitfleet", -1, "application/json"
	return config, nil
}

// leaseConfig returns the client configuration for the Lease. It uses HTTP/1.1, where a request
// that times out closes its connection and the next one opens another; HTTP/2 would continue
// with a dead connection.
func leaseConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Timeout, config.NextProtos = leaseTimeout, []string{"http/1.1"}
	return config
}

// Fence returns the fence for all writes of this replica.
func (r *Replica) Fence() *Fence { return r.fence }

// Identity returns the identity of this replica in the lease.
func (r *Replica) Identity() string { return r.cfg.Identity }

// Leader returns the leader as the lease was last read.
func (r *Replica) Leader() Leader {
	if leader := r.leader.Load(); leader != nil {
		return *leader
	}
	return Leader{}
}

// Depose makes this replica stop leading, and never lead again, because another one has taken
// over. It does not block.
func (r *Replica) Depose() {
	r.fence.close()
	select {
	case r.lost <- struct{}{}:
	default:
	}
}

// Run takes part in the election until ctx is done, and calls lead once this replica leads. If
// the Lease was missing, or somebody other than its holder has cleared the holder, it first
// waits until the fence of a former leader is certainly closed. The context of lead is done
// when the lease is lost, and Run then returns ErrLost. Otherwise Run returns the result of
// lead, after it has released the lease for the next replica.
func (r *Replica) Run(ctx context.Context, lead func(context.Context) error) error {
	electing, withdraw := context.WithCancel(context.WithoutCancel(ctx))
	defer withdraw()
	leading, ended := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: r.lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, Name: r.cfg.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leading) },
			OnStoppedLeading: func() {},
			OnNewLeader:      r.observe,
		},
	})
	if err != nil {
		return fmt.Errorf("stand for election: %w", err)
	}
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	defer func() {
		withdraw()
		<-ended
		r.fence.shut()
	}()
	select {
	case <-leading:
	case <-ctx.Done():
		return nil
	}
	if r.lock.unproven.Load() {
		r.cfg.Log.Info("the lease was not released; a former leader may write until its fence closes", "wait", fenceAfter)
		select {
		case <-time.After(fenceAfter):
		case <-ctx.Done():
			return nil // and the lease is not released, since the next replica has to wait too
		case <-ended:
			return ErrLost
		case <-r.lost:
			return ErrLost
		}
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-ended:
		case <-r.lost:
			withdraw()
		case <-working.Done():
			return
		}
		r.fence.shut()
		stop(ErrLost)
	}()
	r.cfg.Log.Info("this replica leads", "replica", r.cfg.Identity)
	err = lead(working)
	if context.Cause(working) == ErrLost {
		return ErrLost
	}
	withdraw()
	<-ended
	r.release()
	return err
}

// observe logs that there is another leader.
func (r *Replica) observe(leader string) {
	if leader != r.cfg.Identity {
		r.cfg.Log.Info("another replica leads", "leader", leader)
	}
}

// release releases the lease, so that the next replica does not have to wait until it expires.
func (r *Replica) release() {
	r.fence.shut()
	ctx, cancel := context.WithTimeout(context.Background(), retryPeriod)
	defer cancel()
	record, _, err := r.lock.Get(ctx)
	if err == nil && record.HolderIdentity == r.cfg.Identity {
		now := metav1.Now()
		err = r.lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: released, RenewTime: now, AcquireTime: now,
		})
	}
	if err != nil {
		r.cfg.Log.Warn("lease not released; the next leader waits until it expires", "err", err)
	}
}

// A lock is the Lease. Each renewal opens the fence.
type lock struct {
	resourcelock.Interface
	fence   *Fence
	deposed func()
	// unproven is set if the Lease could be acquired although a former leader has neither
	// released it nor let it expire: it was missing, or its holder was cleared.
	unproven atomic.Bool
}

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		l.unproven.Store(true)
	case err != nil, record.HolderIdentity == l.Identity(): // the state when it was acquired
	default:
		l.unproven.Store(record.HolderIdentity == "" && record.LeaseDurationSeconds != released)
	}
	if err == nil && record.HolderIdentity != l.Identity() && l.fence.opened() {
		l.deposed()
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.renew(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.renew(record, func() error { return l.Interface.Update(ctx, record) })
}

func (l *lock) renew(record resourcelock.LeaderElectionRecord, send func() error) error {
	sent := time.Now() // others count from the time when they see it, which is later
	err := send()
	if err == nil && record.HolderIdentity == l.Identity() {
		l.fence.open(sent.Add(fenceAfter))
	}
	return err
}
