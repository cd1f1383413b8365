package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/test/fleet"
)

const noImage = `{"status":{"phase":"Pending","containerStatuses":[{"name":"main","image":"x","imageID":"","ready":false,"restartCount":0,
	"state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image app:1.0: token canary-value is refused"}}}]}}`

// A Deployment that makes no progress reports after a while why its pods fail, without the
// value of a Secret. That takes one request, and none while it is available. Without the
// permission to read pods the status says so.
func TestUnavailableDeploymentHasTheReasonOfItsPods(t *testing.T) {
	t.Parallel()
	f := workloadFleet(t, fleet.Options{Clusters: 1})
	a := newAgentOn(t, f.Members()[0])
	defer a.stop()
	ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
	secret := manifest("secret", map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "token", "namespace": ns}, "stringData": map[string]any{"token": "canary-value"},
	})
	works := []*work.Work{workOf("web", "1", namespaceOf(ns), secret, deployment(ns, "web", 1, nil))}
	a.Set(works)
	a.available(key, "web", "0 of 1 replicas available")
	pod := a.podOf(ns, noImage)
	a.sent.Reset()
	a.available(key, "web", "Manifest is not yet available; Fleet will check again later (0 of 1 replicas available; pod "+pod+
		", container main: ImagePullBackOff: Back-off pulling image app:1.0: token (redacted for security reasons) is refused)")
	if got := a.sent.Requests(requestsBelow("/api/v1/namespaces/" + ns + "/")); len(got) != 1 || got[0].Query.Get("limit") != "20" {
		t.Errorf("it asked: %v", got)
	}

	a.sent.Reset()
	a.podOf(ns, `{"status":{"phase":"Running","containerStatuses":null,"conditions":[{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"}]}}`)
	a.available(key, "web", "available")
	if got := a.sent.Requests(fleet.Watches, fleet.Probes, requestsBelow("/api/v1/namespaces/"+ns+"/")); len(got) > 0 {
		t.Errorf("it asked: %v", got)
	}

	// Another agent, with all permissions except to read pods.
	a.stop()
	a.config = a.withoutPods(ns)
	a.start()
	a.Set(works)
	a.podOf(ns, strings.ReplaceAll(noImage, `"phase":"Pending",`, `"phase":"Pending","conditions":[{"type":"Ready","status":"False"}],`))
	a.available(key, "web", "(0 of 1 replicas available; the reason is not known: gitfleet may not read pods there)")
}

// requestsBelow ignores all requests except those below a path.
func requestsBelow(path string) func(fleet.Request) bool {
	return func(q fleet.Request) bool { return !strings.HasPrefix(q.Path, path) }
}

// podOf sets the status of the only pod of a namespace, and returns its name.
func (a *agent) podOf(namespace, status string) string {
	a.t.Helper()
	pods := a.client.CoreV1().Pods(namespace)
	var list *corev1.PodList
	a.eventually("there is a pod", func() (bool, error) {
		var err error
		list, err = pods.List(context.Background(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 1, err
	})
	name := list.Items[0].Name
	_, err := pods.Patch(context.Background(), name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	noError(a.t, err)
	return name
}

// withoutPods returns credentials with the permissions that an agent needs, except to read
// pods.
func (a *agent) withoutPods(namespace string) *rest.Config {
	a.t.Helper()
	ctx, user := context.Background(), "careful"
	all := []string{"*"}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps", "secrets", "nodes"}, Verbs: all},
		{APIGroups: []string{"apps"}, Resources: all, Verbs: all},
		{NonResourceURLs: all, Verbs: all},
	}
	admin := kubernetes.NewForConfigOrDie(a.config)
	_, err := admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Rules: rules}, metav1.CreateOptions{})
	noError(a.t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace}, Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace},
	}, metav1.CreateOptions{})
	noError(a.t, err)
	careful := rest.CopyConfig(a.config)
	careful.Impersonate = rest.ImpersonationConfig{UserName: user}
	return careful
}
