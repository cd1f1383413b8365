package simulated

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// settle does what the controllers of a real cluster do after a write, if they are enabled, and
// returns the resulting object. The lock must be held.
func (c *Cluster) settle(o *object) *object {
	if o.kind == definition {
		return c.report(o, map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "lastTransitionTime": rfc3339(o.created)},
			map[string]any{"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "lastTransitionTime": rfc3339(o.created)},
		}})
	}
	if !c.fleet.options.Workloads || o.kind.Group != "apps" {
		return o
	}
	spec, _ := o.coded()["spec"].(map[string]any)
	replicas, ok := spec["replicas"].(int64)
	if !ok {
		replicas = 1
	}
	status := map[string]any{"observedGeneration": o.generation}
	for _, name := range counters[o.kind.Kind] {
		status[name] = replicas
	}
	switch o.kind.Kind {
	case "Deployment":
		status["conditions"] = []any{map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}}
	case "StatefulSet":
		status["currentRevision"], status["updateRevision"] = "1", "1"
	}
	return c.report(o, status)
}

// counters are the fields of a status that count the pods of an available workload.
var counters = map[string][]string{
	"Deployment":  {"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"},
	"StatefulSet": {"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas"},
	"DaemonSet":   {"desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable"},
}

// report writes a status as a controller does.
func (c *Cluster) report(before *object, status map[string]any) *object {
	patch := empty(before.kind, before.namespace, before.name)
	patch["status"] = runtime.DeepCopyJSON(status)
	after, _, err := c.apply(before.kind, "status", before.namespace, before.name, []byte(marshal(patch)), "kube-controller-manager", true, false)
	if err != nil {
		panic("simulated: " + err.Error()) // it is there, and the patch is ours
	}
	return after
}
