// Package pods finds out why a workload stays unavailable: from its pods, from events about those that
// cannot be created, and from what pods wait for.
//
// A Tracker is told how available the workloads of a cluster are. It reads the pods of one that
// has been unavailable for some time, and then with backoff: what they say may alternate by
// itself, as between a failing image pull and the wait for the next. It also reads those of a workload
// that counts as available while none of its pods has started, such as a Job.
package pods

import (
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
)

// A creator says where events tell why the pods of a workload cannot be created: they are about
// objects of a kind, which is that of the workload, or one in between, whose name begins with its
// name. It is empty if the status of the workload says it, or if there is nobody in between.
type creator string

// workloads are the kinds that create pods, pods themselves, and the claims that they wait for.
var workloads = map[schema.GroupKind]creator{
	{Group: "apps", Kind: "Deployment"}: "", {Group: "apps", Kind: "StatefulSet"}: "StatefulSet", {Group: "apps", Kind: "DaemonSet"}: "DaemonSet",
	{Group: "batch", Kind: "Job"}: "Job", {Group: "batch", Kind: "CronJob"}: "Job",
	{Group: "apps", Kind: "ReplicaSet"}: "ReplicaSet", {Kind: "ReplicationController"}: "ReplicationController", {Kind: "Pod"}: "",
	{Kind: "PersistentVolumeClaim"}:             "",
	{Group: "argoproj.io", Kind: "Rollout"}:     "ReplicaSet",
	{Group: "apps.kruise.io", Kind: "CloneSet"}: "CloneSet", {Group: "apps.kruise.io", Kind: "StatefulSet"}: "StatefulSet",
	{Group: "apps.kruise.io", Kind: "DaemonSet"}: "DaemonSet",
}

// IsWorkload reports whether the objects of a kind are tracked: they create pods, are pods, or claims
// that pods wait for.
func IsWorkload(kind schema.GroupKind) bool {
	_, is := workloads[kind]
	return is
}

var userInURL = regexp.MustCompile(`://[^/@\s"]+@`)

// maxMessage is the maximum length of a message in bytes: a status shows it on one line.
const maxMessage = 400

// Scrub removes credentials and the content of Secrets from a text of the cluster, and shortens
// it afterwards, since a part of a secret value would not be found.
func Scrub(text string, secrets diff.Secrets) string {
	return health.Cut(secrets.Scrub(userInURL.ReplaceAllString(text, "://***@")), maxMessage)
}

// selectorOf returns the label selector of the pods of a workload: that of its manifest or, for a Job
// without one, that which the server sets. It is empty if the workload has none.
func selectorOf(o *unstructured.Unstructured) string {
	var selector metav1.LabelSelector
	written, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(written, &selector)
	if o.GetKind() == "ReplicationController" {
		selector.MatchLabels, _, err = unstructured.NestedStringMap(o.Object, "spec", "selector")
		if len(selector.MatchLabels) == 0 && err == nil {
			selector.MatchLabels, _, err = unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
		}
	}
	if text := metav1.FormatLabelSelector(&selector); err == nil && text != "<none>" && text != "<error>" {
		return text
	}
	switch o.GetKind() {
	case "Job":
		return "job-name=" + o.GetName()
	case "CronJob":
		return "job-name" // those of its Jobs are found by their names
	}
	return ""
}
