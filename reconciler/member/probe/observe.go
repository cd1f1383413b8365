package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// An observation has the properties of a cluster that its API shows.
type observation struct {
	uid        string
	version    uint64 // the resource version of the namespaces
	properties map[string]string
	namespaces map[string]bool
}

// observe reads namespaces, nodes, pods and the version, page by page. It leaves out what
// cannot be read, for instance because a permission is missing; err says what that is.
func (pr *Prober) observe(ctx context.Context) (observation, error) {
	o := observation{properties: map[string]string{}}
	var errNamespaces, errVersion, errPods error
	var version string
	var reading sync.WaitGroup
	reading.Go(func() { errNamespaces = pr.observeNamespaces(ctx, &o) })
	reading.Go(func() { version, errVersion = pr.readVersion(ctx) })
	reading.Go(func() { errPods = pr.updateDemand(ctx) })
	sums, nodes, errNodes := pr.observeNodes(ctx)
	reading.Wait()
	switch {
	case errNodes != nil:
	case errPods != nil:
		for _, r := range summed {
			delete(sums, "available-"+r) // unknown, which must not be reported as if all of it were available
		}
	default:
		sums.subtract(pr.demand.sum)
	}
	if errVersion == nil {
		o.properties["k8s.io/k8s-version"] = version
	}
	if nodes >= 0 {
		o.properties["kubernetes-fleet.io/node-count"] = strconv.Itoa(nodes)
	}
	for name, q := range sums {
		o.properties[api.ResourcePropertyPrefix+name] = q.String()
	}
	return o, errors.Join(errNamespaces, errVersion, errNodes, errPods)
}

// resources are sums of quantities by KubeFleet's names, such as total-cpu.
type resources map[string]quantity.Quantity

func (r resources) add(name, value string) {
	q, err := api.ParseQuantity(value)
	if err != nil {
		return
	}
	sum := r[name]
	sum.Add(q)
	r[name] = sum
}

// summed are the resources that are summed, the same two as in KubeFleet.
var summed = []string{"cpu", "memory"}

// A namespace is what is read of a Namespace.
type namespace struct {
	Metadata struct{ Name, UID string }
}

func (pr *Prober) observeNamespaces(ctx context.Context, o *observation) error {
	found, text := map[string]bool{}, 0
	version, err := connection.EachItem(ctx, func() *rest.Request {
		return pr.conn.Bulk().Get().AbsPath("api/v1/namespaces").SetHeader("Accept", acceptMetadataList)
	}, func(n namespace) error {
		name := n.Metadata.Name
		if text += len(name); len(found) >= connection.MaxKeptItems || text > connection.MaxNamespaceText {
			return connection.Exceeded(connection.MaxKeptItems, "namespaces, or with longer names than namespaces have")
		}
		if len(name) > connection.MaxNamespaceName {
			return nil // it is no namespace, and would be shown in the status
		}
		found[name] = true
		if name == metav1.NamespaceSystem {
			o.uid = connection.CutTo(n.Metadata.UID, longestWord)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read namespaces: %w", err)
	}
	o.namespaces, o.version = found, observed.ParseVersion(version)
	return nil
}

// longestWord is the maximum length in bytes of what is kept of a UID and of a version.
const longestWord = 200

const acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

func (pr *Prober) readVersion(ctx context.Context) (string, error) {
	raw, err := connection.Answer(pr.conn.REST().Get().AbsPath("version").Do(ctx))
	if err != nil {
		return "", fmt.Errorf("read version: %w", err)
	}
	var v struct{ GitVersion string }
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", fmt.Errorf("read version: %w", err)
	}
	return connection.CutTo(v.GitVersion, longestWord), nil
}

// observeNodes counts the nodes and sums their resources, without what pods request. The count
// is -1 if nodes cannot be read.
func (pr *Prober) observeNodes(ctx context.Context) (sums resources, nodes int, err error) {
	sums = resources{}
	_, err = connection.EachItem(ctx, func() *rest.Request {
		return pr.conn.Bulk().Get().AbsPath("api/v1/nodes")
	}, func(n struct {
		Status struct{ Capacity, Allocatable map[string]string }
	}) error {
		nodes++
		for _, r := range summed {
			sums.add("total-"+r, n.Status.Capacity[r])
			sums.add("allocatable-"+r, n.Status.Allocatable[r])
			sums.add("available-"+r, n.Status.Allocatable[r])
		}
		return nil
	})
	if err != nil {
		return nil, -1, fmt.Errorf("read nodes: %w", err)
	}
	for _, r := range summed {
		for _, of := range []string{"total-", "allocatable-", "available-"} {
			if _, ok := sums[of+r]; !ok {
				sums[of+r] = quantity.Quantity{}
			}
		}
	}
	return sums, nodes, nil
}

// observeInterval returns the time between two observations of the cluster.
func (pr *Prober) observeInterval() time.Duration {
	return max(pr.cfg.Observe, observeEach*pr.cfg.Pace.interval())
}

// A demand is the sum of the requests of running pods when they were last read. Since reading
// the pods is the expensive part of an observation, it is done less often. Only probes use it.
type demand struct {
	at  time.Time
	sum resources
}

// demandFor is the number of observations that use one read of the pods.
const demandFor = 5

// updateDemand reads the requests of running pods if they were last read more than demandFor
// observations ago.
func (pr *Prober) updateDemand(ctx context.Context) error {
	if time.Since(pr.demand.at) <= demandFor*pr.observeInterval() {
		return nil
	}
	asked, err := pr.readPods(ctx)
	if err != nil {
		return fmt.Errorf("read pods: %w", err)
	}
	pr.demand = demand{time.Now(), asked}
	return nil
}

// subtract reduces the available resources by the requests of pods, to zero at least.
func (r resources) subtract(requested resources) {
	for _, name := range summed {
		q := r["available-"+name]
		q.Sub(requested[name])
		if q.Sign() < 0 {
			q = quantity.Quantity{}
		}
		r["available-"+name] = q
	}
}

// readPods sums the requests of pods that are on a node and have not ended.
func (pr *Prober) readPods(ctx context.Context) (resources, error) {
	sums := resources{}
	running := "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
	_, err := connection.EachItem(ctx, func() *rest.Request {
		return pr.conn.Bulk().Get().AbsPath("api/v1/pods").Param("fieldSelector", running)
	}, func(p struct {
		Spec struct {
			Containers []struct {
				Resources struct{ Requests map[string]string }
			}
		}
	}) error {
		for _, c := range p.Spec.Containers {
			for _, r := range summed {
				sums.add(r, c.Resources.Requests[r])
			}
		}
		return nil
	})
	return sums, err
}
