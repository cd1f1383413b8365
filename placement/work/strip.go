package work

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// serverFields are the metadata fields that a server sets. They are present in the output of
// kubectl get, and applying them fails or has no effect.
var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

// serverAnnotations are annotations that controllers and kubectl set.
var serverAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"deployment.kubernetes.io/revision",
}

// strip removes the fields that a server sets.
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
