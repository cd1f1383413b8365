package member

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// childless are the API groups whose objects have no dependents that would outlive them.
var childless = map[string]bool{
	"": true, "admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true, "autoscaling": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "networking.k8s.io": true,
	"node.k8s.io": true, "policy": true, "rbac.authorization.k8s.io": true, "scheduling.k8s.io": true, "storage.k8s.io": true,
}

// propagation returns the propagation policy for the deletion of an object. When a whole
// placement is removed, an object counts as gone only when its dependents are, so that the Pods
// of a Deployment no longer run. Otherwise dependents are deleted in the background. The
// server's default must not be used: for some kinds it is neither, and would for instance leave
// the Pods of a Job.
func (s *session) propagation(st stale) metav1.DeletionPropagation {
	kind := st.item.ID().GroupKind()
	if s.works.placed(st.inv.Placement) || childless[kind.Group] && kind != (schema.GroupKind{Kind: "ReplicationController"}) {
		return metav1.DeletePropagationBackground
	}
	return metav1.DeletePropagationForeground
}
