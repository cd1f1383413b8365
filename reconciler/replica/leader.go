package replica

import (
	"context"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// A Leader is the holder of the lease, as the lease says; the zero value if there is none.
type Leader struct {
	Identity string
	// Since is when it took the lease, by its clock.
	Since time.Time
	// Address is where it answers requests; empty if that is not known.
	Address string
}

// addressAnnotation is the annotation of the Lease with the address of its holder.
const addressAnnotation = "gitfleet.dev/leader-address"

// leaderOf returns the leader that a Lease names.
func leaderOf(lease *coordinationv1.Lease) Leader {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return Leader{}
	}
	l := Leader{Identity: *lease.Spec.HolderIdentity, Address: lease.Annotations[addressAnnotation]}
	if t := lease.Spec.AcquireTime; t != nil {
		l.Since = t.Time
	}
	return l
}

// addressedLeases reads and writes Leases for a replica: it adds the address of the replica to what the replica writes as their
// holder, and records the leader of what is read.
type addressedLeases struct {
	coordination.LeasesGetter
	// address sets the address in a Lease, and leader is the last observed holder.
	address func(*coordinationv1.Lease)
	leader  *atomic.Pointer[Leader]
}

// Leases implements coordination.LeasesGetter.
func (l addressedLeases) Leases(namespace string) coordination.LeaseInterface {
	return addressedLease{l.LeasesGetter.Leases(namespace), l}
}

type addressedLease struct {
	coordination.LeaseInterface
	of addressedLeases
}

// Get implements coordination.LeaseInterface.
func (l addressedLease) Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error) {
	lease, err := l.LeaseInterface.Get(ctx, name, opts)
	if err == nil {
		leader := leaderOf(lease)
		l.of.leader.Store(&leader)
	}
	return lease, err
}

// Create implements coordination.LeaseInterface.
func (l addressedLease) Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error) {
	l.of.address(lease)
	return l.LeaseInterface.Create(ctx, lease, opts)
}

// Update implements coordination.LeaseInterface.
func (l addressedLease) Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	l.of.address(lease)
	return l.LeaseInterface.Update(ctx, lease, opts)
}

// address sets the address in a Lease that this replica writes: its own as the holder, and none if it releases the Lease.
func (r *Replica) address(lease *coordinationv1.Lease) {
	delete(lease.Annotations, addressAnnotation)
	if r.own == "" || leaderOf(lease).Identity != r.cfg.Identity {
		return
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[addressAnnotation] = r.own
}

// ownAddress returns an address of this process for others: if it listens on all addresses of the machine, the one that the
// management cluster sees. It sends nothing.
func ownAddress(address, management string) string {
	u, err := url.Parse(address)
	if err != nil || u.Port() == "" {
		return ""
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "" && (ip == nil || !ip.IsUnspecified()) {
		return address
	}
	to, err := url.Parse(management)
	if err != nil {
		return ""
	}
	port := to.Port()
	if port == "" {
		port = "443"
	}
	c, err := net.Dial("udp", net.JoinHostPort(to.Hostname(), port)) // which only looks up the route
	if err != nil {
		return ""
	}
	defer c.Close()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	if err != nil {
		return ""
	}
	u.Host = net.JoinHostPort(host, u.Port())
	return u.String()
}
