package replica

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/transport"
)

// An Inspection is the state that a replica would find in the management cluster.
type Inspection struct {
	// Missing are the permissions that a replica needs and the account does not have.
	Missing []string
	// Exists says that the Lease exists. Holder is its holder; empty if there is none.
	Exists bool
	Holder string
	// Age is the time since the Lease was renewed, by the clock of its holder. If that time is
	// not plausible, Renewed says whether the Lease was renewed while it was watched.
	Age     time.Duration
	Renewed bool
}

// An Inspector reads the Lease and the permissions of the account, and changes nothing.
type Inspector struct {
	Config
	// Wrap wraps the transport; it may be nil.
	Wrap transport.WrapperFunc
	// Now returns the time of the management cluster, once that has responded.
	Now func() time.Time
	// Watch is how long a Lease is watched that does not seem to be renewed.
	Watch time.Duration
}

// permissions returns the permissions that a replica needs in the namespace of the Lease.
func (c Config) permissions() []authorizationv1.ResourceAttributes {
	lease := func(verb, name string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Namespace: c.Namespace, Group: coordinationv1.GroupName, Resource: "leases", Verb: verb, Name: name}
	}
	all := []authorizationv1.ResourceAttributes{lease("create", ""), lease("get", c.Name), lease("update", c.Name)}
	for _, verb := range []string{"get", "list", "create", "update", "delete"} {
		all = append(all, authorizationv1.ResourceAttributes{Namespace: c.Namespace, Resource: "secrets", Verb: verb})
	}
	return all
}

// Inspect checks the permissions, and reads the Lease if none is missing.
func (i Inspector) Inspect(ctx context.Context) (found Inspection, err error) {
	config, err := clusterConfig(i.Kubeconfig)
	if err != nil {
		return found, err
	}
	config.Timeout = requestTimeout
	if i.Wrap != nil {
		config.Wrap(i.Wrap)
	}
	reviews, err := authorization.NewForConfig(config)
	if err != nil {
		return found, fmt.Errorf("use the credentials of the management cluster: %w", err)
	}
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		return found, fmt.Errorf("use the credentials of the management cluster: %w", err)
	}
	for _, p := range i.permissions() {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &p}}
		reviewed, err := reviews.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return found, fmt.Errorf("review permissions: %w", err)
		}
		if !reviewed.Status.Allowed {
			resource := metav1.GroupResource{Group: p.Group, Resource: p.Resource}
			found.Missing = append(found.Missing, p.Verb+" "+resource.String())
		}
	}
	if len(found.Missing) > 0 {
		return found, nil
	}
	err = i.readLease(ctx, leases.Leases(i.Namespace), &found)
	return found, err
}

// readLease reads the Lease, and a second time if it does not seem to be renewed.
func (i Inspector) readLease(ctx context.Context, leases coordination.LeaseInterface, found *Inspection) error {
	lease, err := leases.Get(ctx, i.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the Lease: %w", err)
	}
	found.Exists = true
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil {
		return nil
	}
	found.Holder, found.Age = *lease.Spec.HolderIdentity, i.Now().Sub(lease.Spec.RenewTime.Time)
	found.Renewed = found.Age.Abs() < leaseDuration
	for end := time.Now().Add(i.Watch); !found.Renewed && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(i.Watch, retryPeriod)):
		}
		again, err := leases.Get(ctx, i.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the Lease: %w", err)
		}
		found.Renewed = again.ResourceVersion != lease.ResourceVersion
	}
	return nil
}
