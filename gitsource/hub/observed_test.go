package hub

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestReadClustersKeepsTheStatus(t *testing.T) {
	got, err := ReadClusters("fleet.yaml", []byte(`
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberClusterList
items:
- metadata: {name: b, labels: {env: prod}, creationTimestamp: null, resourceVersion: "7", uid: x}
  status:
    properties:
      kubernetes-fleet.io/node-count: {value: "3", observationTime: null}
    resourceUsage:
      capacity: {cpu: 4, memory: 16Gi}
      available: {cpu: 0.5}
    namespaces: {web: ""}
    agentStatus:
    - type: MemberAgent
      lastReceivedHeartbeat: "2026-01-31T12:00:00Z"
      conditions:
      - {type: Joined, status: "True"}
- metadata: {name: a}
- metadata: {name: c}
  status: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range got {
		fmt.Fprintf(&b, "%s seen=%t line %d\n", c.Name, c.Seen, c.Origin.Line)
	}
	if want := "a seen=false line 18\nb seen=true line 5\nc seen=true line 19\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
	s := got[1].Status
	cpu, half := s.ResourceUsage.Capacity["cpu"], s.ResourceUsage.Available["cpu"]
	switch {
	case s.Properties["kubernetes-fleet.io/node-count"].Value != "3", cpu.String() != "4", half.String() != "500m":
		t.Errorf("properties: %+v", s)
	case s.AgentStatus[0].LastReceivedHeartbeat.UTC() != time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC):
		t.Errorf("heartbeat: %v", s.AgentStatus[0].LastReceivedHeartbeat)
	case s.AgentStatus[0].Conditions[0].Status != "True":
		t.Errorf("conditions: %+v", s.AgentStatus[0].Conditions)
	}
}

func TestReadClustersReportsPositions(t *testing.T) {
	const head = "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\n"
	tests := map[string]struct{ text, want string }{
		"empty":          {"", "fleet.yaml: has no MemberCluster"},
		"no YAML":        {"a: b: c", "fleet.yaml:1: not valid YAML: mapping values are not allowed in this context; check the indentation here, and put text that has a colon in quotes"},
		"another kind":   {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}", "fleet.yaml:2: kind: Pod is no MemberCluster of cluster.kubernetes-fleet.io; this file holds nothing else"},
		"a scalar":       {"hello", "fleet.yaml:1: not a MemberCluster but text"},
		"no name":        {head + "metadata: {}", "fleet.yaml:3: metadata.name: missing; give the object a name"},
		"unknown field":  {head + "metadata: {name: a}\nstatus:\n  propertys: {}", "fleet.yaml:5: status.propertys: unknown field; did you mean properties?"},
		"no quantity":    {head + "metadata: {name: a}\nstatus:\n  resourceUsage:\n    capacity:\n      cpu: many", "fleet.yaml:7: status.resourceUsage.capacity.cpu: must be a quantity such as 4 or 16Gi"},
		"no time":        {head + "metadata: {name: a}\nstatus:\n  agentStatus:\n  - type: MemberAgent\n    lastReceivedHeartbeat: now", "fleet.yaml:7: status.agentStatus[0].lastReceivedHeartbeat: must be a time such as 2026-01-31T12:00:00Z"},
		"a plain number": {head + "metadata: {name: a}\nstatus:\n  properties:\n    nodes: {value: 3}", "fleet.yaml:6: status.properties.nodes.value: must be a string, not a number; put it in quotes"},
		"twice":          {head + "metadata: {name: a}\n---\n" + head + "metadata: {name: a}", "fleet.yaml:5: metadata.name: MemberCluster a is at fleet.yaml:1 as well; remove one of them"},
		"broken label":   {head + "metadata: {name: a, labels: {env: '?'}}", "fleet.yaml:3: metadata.labels.env: \"?\" is not a valid label value: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ReadClusters("fleet.yaml", []byte(test.text))
			var bad *LoadError
			if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}
