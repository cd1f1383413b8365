package member

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// childless are the groups of objects of which nothing else is made that would be
// left when they are gone.
var childless = map[string]bool{
	"": true, "admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true, "autoscaling": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "networking.k8s.io": true,
	"node.k8s.io": true, "policy": true, "rbac.authorization.k8s.io": true, "scheduling.k8s.io": true, "storage.k8s.io": true,
}

// propagation is how an object is deleted. When all of a placement goes, an
// object of which others are made is gone only when they are: the Pods of a
// Deployment run no more. Otherwise they go after it. The default of the server
// is neither: it would leave behind the Pods of a Job.
func (s *session) propagation(st stale) metav1.DeletionPropagation {
	kind := st.item.id().GroupKind()
	if s.placed(st.inv.Placement) || childless[kind.Group] && kind != (schema.GroupKind{Kind: "ReplicationController"}) {
		return metav1.DeletePropagationBackground
	}
	return metav1.DeletePropagationForeground
}
