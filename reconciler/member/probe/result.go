package probe

import (
	"time"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Result is the result of one probe.
type Result struct {
	At           time.Time
	Err          error
	Unauthorized bool
	UID          string
	properties   map[string]string
	Namespaces   []string
	observed     bool // nodes, pods and namespaces were read
	connection.Rotation
	// Returned says that an earlier probe failed whose result was not received.
	Returned bool
}

// overtakes takes over the information of an older result that was not received.
func (p *Result) overtakes(old *Result) {
	p.Returned = p.Err == nil && (old.Err != nil || old.Returned)
	if p.UID == "" {
		p.UID = old.UID
	}
	p.Replaced = append(old.Replaced, p.Replaced...)
	if p.Another == nil {
		p.Another = old.Another
	}
	if p.Namespaces == nil {
		p.Namespaces = old.Namespaces
	}
}

// Seen returns the result as an observation.
func (p Result) Seen(cluster string) ledger.ClusterSeen {
	o := ledger.ClusterSeen{
		Cluster: cluster, At: p.At, Healthy: p.Err == nil, UID: p.UID,
		Properties: p.properties, Namespaces: p.Namespaces, Unrenewed: p.Unrenewed,
	}
	if p.Err != nil {
		o.Error = p.Err.Error()
	}
	return o
}
