package probe

import (
	"cmp"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A Result is the result of one probe.
type Result struct {
	At           time.Time
	Err          error
	Unauthorized bool
	UID          string
	// Version is the resource version of the namespaces; zero if it was not read, or is no number.
	Version uint64
	// Restored says why the cluster must have been restored to an earlier state; empty if nothing
	// shows that.
	Restored string
	// RestoreSuspected says that SuspectRestore was called, or an earlier probe failed.
	RestoreSuspected bool
	properties       map[string]string
	unread           string // why some properties were not read
	Namespaces       []string
	observed         bool // nodes, pods and namespaces were read
	connection.Rotation
	// Returned says that an earlier probe failed whose result was not received.
	Returned bool
}

// addUnreceived adds what only an older result has, which was not received.
func (p *Result) addUnreceived(old *Result) {
	p.Returned = p.Err == nil && (old.Err != nil || old.Returned)
	p.UID, p.Version, p.Restored = cmp.Or(p.UID, old.UID), cmp.Or(p.Version, old.Version), cmp.Or(p.Restored, old.Restored)
	p.Replaced = append(old.Replaced, p.Replaced...)
	if p.Another == nil {
		p.Another = old.Another
	}
	p.RestoreSuspected = p.RestoreSuspected || old.RestoreSuspected
	if p.Namespaces == nil {
		p.Namespaces = old.Namespaces
	}
}

// Seen returns the result as an observation.
func (p Result) Seen(cluster string) protocol.ClusterSeen {
	o := protocol.ClusterSeen{
		Cluster: cluster, At: p.At, Healthy: p.Err == nil, UID: p.UID, Version: p.Version,
		Properties: p.properties, Unread: p.unread, Namespaces: p.Namespaces, Unrenewed: p.Unrenewed,
	}
	if p.Err != nil {
		o.Error = connection.Cut(p.Err.Error())
	}
	return o
}
