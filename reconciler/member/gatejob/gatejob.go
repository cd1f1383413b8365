// Package gatejob runs the Jobs of gates on a member cluster.
//
// Queue.Run creates a Job unless it exists. Others may be able to write Jobs in that namespace. Therefore, a Job that has ended
// counts only if its spec equals the result of a dry run that creates the requested Job.
package gatejob

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// Jobs is the resource of Jobs.
var Jobs = connection.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, Namespaced: true}

// run returns a Job as it is on the cluster, and creates it if it does not exist. If another Job has its name, the error says so.
func run(ctx context.Context, conn *connection.Conn, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	id := api.ID{Group: Jobs.Group, Kind: "Job", Namespace: want.GetNamespace(), Name: want.GetName()}
	live, err := conn.Read(ctx, Jobs, id)
	if err != nil {
		return nil, connection.Plain(err)
	}
	body, err := want.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if live == nil {
		if _, err := conn.Create(ctx, Jobs, id, body); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, connection.Plain(err)
		}
		return want, nil
	}
	if !isOurs(live, want) {
		return nil, fmt.Errorf("the Job %s/%s is not gitfleet's; delete it there", id.Namespace, id.Name)
	}
	if !controllers.HasEnded(live) {
		return live, nil
	}
	made, err := conn.DryRunNew(ctx, Jobs, id, body)
	if err != nil {
		return nil, fmt.Errorf("compare the Job %s/%s with Git: %w", id.Namespace, id.Name, connection.Plain(err))
	}
	if !reflect.DeepEqual(compared(live), compared(made)) {
		return nil, fmt.Errorf("the Job %s/%s is not as in Git, and does not count; delete it there, and it is created again", id.Namespace, id.Name)
	}
	return live, nil
}

// isOurs reports whether a Job is marked as one of the gate and the fleet.
func isOurs(live, want *unstructured.Unstructured) bool {
	return live.GetLabels()[api.RolloutGateLabel] == want.GetLabels()[api.RolloutGateLabel] &&
		live.GetAnnotations()[api.FleetIDAnnotation] == want.GetAnnotations()[api.FleetIDAnnotation]
}

// compared returns the spec of a Job as far as it decides what the Job does. Left out is what differs between two Jobs of the same
// template, and what schedulers such as Kueue change: where its Pods run, and when.
func compared(job *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(job.Object, "spec")
	delete(spec, "suspend")
	delete(spec, "selector")
	for _, label := range []string{"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"} {
		unstructured.RemoveNestedField(spec, "template", "metadata", "labels", label)
	}
	for _, field := range []string{"labels", "annotations"} {
		all, _, _ := unstructured.NestedMap(spec, "template", "metadata", field)
		maps.DeleteFunc(all, func(key string, _ any) bool { return strings.HasPrefix(key, "kueue.x-k8s.io/") })
		unstructured.RemoveNestedField(spec, "template", "metadata", field)
		if len(all) > 0 {
			unstructured.SetNestedMap(spec, all, "template", "metadata", field) //nolint:errcheck // it was read from there
		}
	}
	if template, _, _ := unstructured.NestedMap(spec, "template", "metadata"); len(template) == 0 {
		unstructured.RemoveNestedField(spec, "template", "metadata")
	}
	for _, field := range []string{"nodeSelector", "tolerations", "affinity", "schedulingGates"} {
		unstructured.RemoveNestedField(spec, "template", "spec", field)
	}
	return spec
}
