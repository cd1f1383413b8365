package reconciler

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

func (r *orderRun) evict(o Order) (string, error) {
	subject, err := r.subjectOf(o)
	if err != nil {
		return "", err
	}
	key, reason := subject.Placement, strings.TrimSpace(o.Reason)
	record := r.ledger.Placement(key)
	switch {
	case key == (api.PlacementKey{}) || key.Namespace != "" || subject.Cluster == "":
		return "", refuse("a ClusterResourcePlacement is evicted from a cluster: name crp/NAME and the cluster; other placements leave a cluster when their policy does not select it")
	case reason == "":
		return "", refuse("--reason is required")
	case !plainText(reason) || !plainText(strings.TrimSpace(o.By)):
		return "", refuse("the reason and the name must be one line of text of at most %d bytes", longestText)
	case record == nil:
		return "", refuse("%s is not scheduled yet: try again in a moment", key)
	case record.Deleted:
		return "", refuse("cluster resource placement %s is being deleted", key.Name)
	case record.Spec != nil && record.Spec.Policy.NamesClusters():
		return "", refuse("cluster resource placement policy type PickFixed is not supported: remove the cluster from clusterNames in Git")
	}
	name := cmp.Or(o.Name, EvictionName(key.Name, subject.Cluster))
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 || len(name) > 63 {
		return "", refuse("%q cannot be the name of an eviction", name)
	}
	next := *record
	next.Evictions = slices.DeleteFunc(slices.Clone(record.Evictions), func(e placement.Eviction) bool { // only the last try is kept
		return e.By != "" && e.Cluster == subject.Cluster && !e.Pending() && !e.Executed
	})
	if slices.ContainsFunc(record.Evictions, func(e placement.Eviction) bool { return e.Name == name }) {
		return "", refuse("there is an eviction %s already", name)
	}
	next.Evictions = append(next.Evictions, placement.Eviction{Name: name, Cluster: subject.Cluster, By: strings.TrimSpace(o.By), Reason: reason, At: r.now})
	r.ledger.SetPlacement(key, next)
	r.record(history.Evicted, subject, o.By, reason)
	return fmt.Sprintf("the eviction %s of %s from %s is ordered", name, key, subject.Cluster), nil
}

// EvictionName returns a new name for an eviction.
func EvictionName(placement, cluster string) string {
	const longest, digits = 63, 8
	var random [digits / 2]byte
	rand.Read(random[:])
	stem := placement + "-" + cluster
	return strings.TrimRight(stem[:min(len(stem), longest-digits-1)], "-.") + "-" + hex.EncodeToString(random[:])
}

// cordon begins to drain a cluster, which has to be declared.
func (r *orderRun) cordon(o Order) (string, error) {
	subject, err := r.cordonedSubject(o)
	if err != nil {
		return "", err
	}
	if err := r.knowsCluster(subject.Cluster); err != nil {
		return "", err
	}
	return r.beginSuspension(subject, o)
}

// uncordon makes a cluster schedulable again; it may no longer be declared.
func (r *orderRun) uncordon(o Order) (string, error) {
	subject, err := r.cordonedSubject(o)
	if err != nil {
		return "", err
	}
	return r.endSuspension(subject, "not cordoned any more")
}

func (r *orderRun) cordonedSubject(o Order) (ledger.Subject, error) {
	if r.inForce == nil {
		return ledger.Subject{}, errNoCommit
	}
	kind, name, _ := strings.Cut(o.Subject, "/")
	if !api.NamesClusters(kind) || name == "" || o.Cluster != "" || o.Namespace != "" {
		return ledger.Subject{}, refuse("%s is no cluster: name one", o.Subject)
	}
	return ledger.Subject{Cluster: name, Effect: ledger.Cordons}, nil
}
