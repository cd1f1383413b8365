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
	bounded := &boundedDiscovery{DiscoveryClient: client, asking: make(chan struct{}, askedAtOnce)}
	lists, err := discovery.ServerPreferredResourcesWithContext(ctx, bounded)
	if exceeded := bounded.exceeded(); exceeded != nil {
		return nil, exceeded
	}
	return lists, err
}

// askedAtOnce is how many group versions are asked for at the same time.
const askedAtOnce = 4

// A boundedDiscovery is a discovery client for one discovery of all kinds. It refuses too many, and too long names: a client
// would send a request for each group version, all at once, and keep all answers.
type boundedDiscovery struct {
	*discovery.DiscoveryClient
	asking          chan struct{}
	resources, text atomic.Int64
}

// count counts resources.
func (d *boundedDiscovery) count(l *metav1.APIResourceList) {
	d.resources.Add(int64(len(l.APIResources)))
	for i := range l.APIResources {
		r := &l.APIResources[i]
		text := len(r.Name) + len(r.SingularName) + len(r.Group) + len(r.Version) + len(r.Kind) + len(r.StorageVersionHash)
		for _, words := range [][]string{r.Verbs, r.ShortNames, r.Categories} {
			for _, word := range words {
				text += len(word) + wordBytes
			}
		}
		d.text.Add(int64(text))
	}
}

// wordBytes is what is kept of a word of a list besides its text.
const wordBytes = 16

// exceeded returns an error once there are too many resources.
func (d *boundedDiscovery) exceeded() error {
	switch {
	case d.resources.Load() > MaxResources:
		return Exceeded(MaxResources, "kinds")
	case d.text.Load() > MaxResourceText:
		return Exceeded(MaxResourceText>>20, "MiB of names of kinds")
	}
	return nil
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
		d.count(l)
	}
	if err := d.exceeded(); err != nil {
		return nil, nil, nil, err
	}
	return groups, resources, failed, nil
}

// ServerResourcesForGroupVersionWithContext implements discovery.ServerResourcesInterfaceWithContext.
func (d *boundedDiscovery) ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	select {
	case d.asking <- struct{}{}:
		defer func() { <-d.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := d.exceeded(); err != nil {
		return nil, err
	}
	l, err := d.DiscoveryClient.ServerResourcesForGroupVersionWithContext(ctx, groupVersion)
	if err != nil {
		return l, err
	}
	if d.count(l); d.exceeded() != nil {
		return nil, d.exceeded() // the list is dropped
	}
	return l, nil
}
