// Package pods finds out from its pods why a workload stays unavailable.
//
// A Tracker is told how available the workloads of a cluster are. It reads the pods of one that
// has been unavailable for some time, and then with backoff: what they say may alternate by
// itself, as between a failing image pull and the wait for the next.
package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// podsRead bounds the pods of one request.
const podsRead = 20

// workloads are the kinds that create pods.
var workloads = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "batch", Kind: "Job"}: true,
}

// IsWorkload reports whether the objects of a kind create pods.
func IsWorkload(kind schema.GroupKind) bool { return workloads[kind] }

var userInURL = regexp.MustCompile(`://[^/@\s"]+@`)

// maxMessage is the maximum length of a message in bytes: a status shows it on one line.
const maxMessage = 400

// Scrub removes credentials and the content of Secrets from a text of the cluster, and shortens
// it afterwards, since a part of a secret value would not be found.
func Scrub(text string, secrets diff.Secrets) string {
	return health.Cut(secrets.Scrub(userInURL.ReplaceAllString(text, "://***@")), maxMessage)
}

// selectorOf returns the pod selector of a workload: that of its manifest or, for a Job without
// one, that which the server sets. It is empty if the workload has none.
func selectorOf(o *unstructured.Unstructured) string {
	var selector metav1.LabelSelector
	written, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(written, &selector)
	if text := metav1.FormatLabelSelector(&selector); err == nil && text != "<none>" && text != "<error>" {
		return text
	}
	if o.GetKind() == "Job" {
		return "job-name=" + o.GetName()
	}
	return ""
}

// A question names the pods to read. The answer must not quote the secrets.
type question struct {
	id         api.ID
	generation int64
	selector   string
	secrets    diff.Secrets
}

// diagnose reads a page of the pods of a workload and, if that explains nothing, one of the
// remaining pods that has not started.
func diagnose(ctx context.Context, conn *connection.Conn, q question) (health.Diagnosis, error) {
	if q.selector == "" {
		return health.Diagnosis{}, nil // the selector would match all pods of the namespace
	}
	said, more, err := readPage(ctx, conn, q, "")
	if err == nil && said.Why == "" && more {
		said, _, err = readPage(ctx, conn, q, "status.phase=Pending")
	}
	said.Why = Scrub(said.Why, q.secrets)
	return said, err
}

func readPage(ctx context.Context, conn *connection.Conn, q question, fields string) (said health.Diagnosis, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(conn.Timeout(), 10*time.Second))
	defer cancel()
	request := conn.Bulk().Get().AbsPath("api", "v1", "namespaces", q.id.Namespace, "pods").
		Param("labelSelector", q.selector).Param("limit", fmt.Sprint(podsRead))
	if fields != "" {
		request.Param("fieldSelector", fields)
	}
	raw, err := connection.Answer(request.Do(ctx))
	if err != nil {
		return said, false, fmt.Errorf("read pods: %w", connection.Plain(err))
	}
	var page struct {
		Metadata metav1.ListMeta
		Items    []health.Pod
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return said, false, fmt.Errorf("read pods: %w", err)
	}
	return health.Diagnose(page.Items), page.Metadata.Continue != "", nil
}
