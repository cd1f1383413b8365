package connection

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// PreferredResources lists the resources of all kinds, each in the version that the server prefers. If
// some groups cannot be asked for, it returns the others, and an error. It refuses more than a cluster
// can have.
func (c *Conn) PreferredResources(ctx context.Context) ([]*metav1.APIResourceList, error) {
	client, err := c.Discovery()
	if err != nil {
		return nil, err
	}
	bounded := &boundedDiscovery{DiscoveryClient: client}
	lists, err := discovery.ServerPreferredResourcesWithContext(ctx, bounded)
	if bounded.resources.Load() > MaxResources {
		return nil, Exceeded(MaxResources, "kinds")
	}
	return lists, err
}

// A boundedDiscovery is a discovery client for one survey of all kinds. It refuses too many: a client would
// send a request for each group version, all at once.
type boundedDiscovery struct {
	*discovery.DiscoveryClient
	resources atomic.Int64
}

// GroupsAndMaybeResourcesWithContext implements discovery.AggregatedDiscoveryInterfaceWithContext.
func (d *boundedDiscovery) GroupsAndMaybeResourcesWithContext(ctx context.Context) (*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error) {
	groups, resources, failed, err := d.DiscoveryClient.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	versions := 0
	for i := range groups.Groups {
		versions += len(groups.Groups[i].Versions)
	}
	if versions > MaxGroupVersions {
		return nil, nil, nil, Exceeded(MaxGroupVersions, "versions of API groups")
	}
	for _, l := range resources {
		d.resources.Add(int64(len(l.APIResources)))
	}
	return groups, resources, failed, nil
}

// ServerResourcesForGroupVersionWithContext implements discovery.ServerResourcesInterfaceWithContext.
func (d *boundedDiscovery) ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	if d.resources.Load() > MaxResources {
		return nil, Exceeded(MaxResources, "kinds")
	}
	l, err := d.DiscoveryClient.ServerResourcesForGroupVersionWithContext(ctx, groupVersion)
	if err == nil {
		d.resources.Add(int64(len(l.APIResources)))
	}
	return l, err
}
