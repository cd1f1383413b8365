package work

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// serverFields of metadata are filled in by a server. Someone may have wrapped
// the output of kubectl get, and applying them would fail or mean nothing.
var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

// serverAnnotations are kept by controllers and by kubectl.
var serverAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"deployment.kubernetes.io/revision",
}

// strip removes what only a server fills in. Whatever else is written stays.
func strip(u *unstructured.Unstructured) {
	delete(u.Object, "status")
	for _, f := range serverFields {
		unstructured.RemoveNestedField(u.Object, "metadata", f)
	}
	if _, found, _ := unstructured.NestedMap(u.Object, "metadata", "annotations"); !found {
		return
	}
	for _, a := range serverAnnotations {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", a)
	}
	if len(u.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
	}
}
