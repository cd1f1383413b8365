package member_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// A controlled is a simulated cluster with an agent, on which the test acts as the controllers.
type controlled struct {
	t       *testing.T
	cluster *simulated.Cluster
	config  *rest.Config
	client  dynamic.Interface
	agent   *member.Agent
	cancel  context.CancelFunc
	done    chan struct{}
	limit   member.DeletionLimit
	// recorded is the drift that the next agent knows of.
	recorded map[api.PlacementKey][]protocol.Drift

	mu   sync.Mutex
	seen protocol.WorkSeen
	// reports are the last ones of all placements.
	reports map[api.PlacementKey]protocol.WorkSeen
}

func newControlled(t *testing.T) *controlled {
	t.Helper()
	c := &controlled{t: t, cluster: simulated.New(simulated.Options{}).Cluster("east"), reports: map[api.PlacementKey]protocol.WorkSeen{}}
	c.config = c.cluster.Config()
	var err error
	if c.client, err = dynamic.NewForConfig(c.config); err != nil {
		t.Fatal(err)
	}
	return c
}

// start starts an agent that knows nothing but the cluster.
func (c *controlled) start(works ...*work.Work) {
	c.agent = member.New(member.Config{
		Name: "east", Fleet: "prod", Encoder: apply.NewEncoder("prod", "https://git.example.com/fleet"),
		Connect:       func(context.Context) (*rest.Config, error) { return c.config, nil },
		Log:           slog.New(slog.NewTextHandler(c.t.Output(), nil)),
		DeletionLimit: c.limit,
		Report: func(o protocol.Observation) {
			w, ok := o.(protocol.WorkSeen)
			if !ok {
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.reports[w.Placement] = w; !w.Removed {
				c.seen = w
			}
		},
	})
	c.agent.SetRecord(protocol.MemberRecord{Drifts: c.recorded})
	c.agent.Set(works)
	ctx, cancel := context.WithCancel(c.t.Context())
	c.cancel, c.done = cancel, make(chan struct{})
	go func() {
		defer close(c.done)
		c.agent.Run(ctx)
	}()
	synctest.Wait()
}

func (c *controlled) stop() { c.cancel(); <-c.done }

func (c *controlled) set(works ...*work.Work) {
	c.agent.Set(works)
	c.settle()
}

// settle gives the agent time for everything that it does by itself.
func (c *controlled) settle() {
	time.Sleep(10 * time.Minute)
	synctest.Wait()
}

// placed returns the work of a placement with some objects.
func placed(t *testing.T, name string, objects ...string) *work.Work {
	t.Helper()
	w := &work.Work{
		Placement: api.PlacementKey{Name: name}, Revision: placement.Revision{Commit: "c", Hash: strings.Join(objects, "\n")},
		Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways, WhenToApply: api.ApplyAlways},
	}
	for _, text := range objects {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		w.Manifests = append(w.Manifests, &work.Manifest{Object: &api.Object{ID: api.IDOf(o), Content: o, Hash: text}})
	}
	return w
}

func (c *controlled) of(group, version, resource string) dynamic.ResourceInterface {
	return c.client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).Namespace("default")
}

// live returns an object; nil if it does not exist.
func (c *controlled) live(in dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	o, err := in.Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return o
}

func (c *controlled) patch(in dynamic.ResourceInterface, name, manager, patch string, subresource ...string) {
	c.t.Helper()
	if _, err := in.Patch(c.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresource...); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func (c *controlled) delete(in dynamic.ResourceInterface, name string) {
	c.t.Helper()
	if err := in.Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

// expectNoDrift checks that nothing is reported about the last placement, and that it is applied and
// available.
func (c *controlled) expectNoDrift() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.seen.Unusual().Drifts {
		c.t.Errorf("drift of %s is %s: %+v", d.ID, d.State, d.Paths)
	}
	for _, e := range c.seen.Exceptions {
		c.t.Errorf("%s: %+v, %+v", e.ID, e.Applied, e.Available)
	}
}

const jobWithTTL = `{apiVersion: batch/v1, kind: Job, metadata: {name: schema, namespace: default}, spec: {ttlSecondsAfterFinished: 3, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "x:1"}]}}}}`

// A Job that its TTL deletes after it has finished runs once per content: also after a restart that
// lost everything but the cluster, and if another placement takes over. One that was deleted before
// it finished, or by somebody else, runs again.
func TestFinishedJobRunsOncePerContent(t *testing.T) {
	complete := func(c *controlled) {
		c.patch(c.of("batch", "v1", "jobs"), "schema", "kube-controller-manager", `{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`, "status")
	}
	remove := func(c *controlled) { c.delete(c.of("batch", "v1", "jobs"), "schema") }
	restart := func(c *controlled) { c.stop(); c.start(placed(c.t, "web", jobWithTTL)); c.settle() }
	tests := map[string]struct {
		job  string
		do   []func(*controlled)
		runs bool // it exists at the end
	}{
		"finished":                     {jobWithTTL, []func(*controlled){complete, remove}, false},
		"finished, restarted":          {jobWithTTL, []func(*controlled){complete, remove, restart}, false},
		"deleted while nobody looked":  {jobWithTTL, []func(*controlled){complete, func(c *controlled) { c.stop(); remove(c); c.start(placed(c.t, "web", jobWithTTL)) }}, false},
		"finished while nobody looked": {jobWithTTL, []func(*controlled){func(c *controlled) { c.stop(); complete(c); remove(c); c.start(placed(c.t, "web", jobWithTTL)) }}, false},
		"checked on request":           {jobWithTTL, []func(*controlled){complete, remove, func(c *controlled) { c.agent.Check() }}, false},
		"in a renamed placement": {jobWithTTL, []func(*controlled){complete, remove, func(c *controlled) {
			c.set(&work.Work{Placement: api.PlacementKey{Name: "web"}, Remove: true}, placed(c.t, "shop", jobWithTTL))
		}, func(c *controlled) { c.stop(); c.start(placed(c.t, "shop", jobWithTTL)) }}, false},
		"with new content":                {jobWithTTL, []func(*controlled){complete, remove, func(c *controlled) { c.set(placed(c.t, "web", strings.Replace(jobWithTTL, "x:1", "x:2", 1))) }}, true},
		"deleted before it finished":      {jobWithTTL, []func(*controlled){remove}, true},
		"finished, and deleted, no TTL":   {strings.Replace(jobWithTTL, "ttlSecondsAfterFinished: 3, ", "", 1), []func(*controlled){complete, remove}, true},
		"a second one before it finishes": {jobWithTTL, []func(*controlled){remove, func(c *controlled) { c.settle() }, complete, remove}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newControlled(t)
				c.start(placed(t, "web", test.job))
				defer func() { c.stop() }()
				for _, do := range test.do {
					do(c)
				}
				c.settle()
				if there := c.live(c.of("batch", "v1", "jobs"), "schema") != nil; there != test.runs {
					t.Errorf("it exists: %t", there)
				}
				if !test.runs && !strings.Contains(name, "before it finishes") {
					c.expectNoDrift()
				}
			})
		})
	}
}

// A Job that failed stays failed after its TTL has deleted it.
func TestFailedJobStaysFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControlled(t)
		c.start(placed(t, "web", jobWithTTL))
		jobs := c.of("batch", "v1", "jobs")
		c.patch(jobs, "schema", "kube-controller-manager", `{"status":{"conditions":[{"type":"Failed","status":"True","message":"no such host"}]}}`, "status")
		c.delete(jobs, "schema")
		for range 2 {
			c.settle()
			if len(c.seen.Exceptions) != 1 || !strings.Contains(c.seen.Exceptions[0].Failure, "the Job failed, and the TTL controller has deleted it") {
				t.Errorf("it says %+v", c.seen.Exceptions)
			}
			c.stop()
			c.start(placed(t, "web", jobWithTTL))
		}
		c.stop()
	})
}

const (
	deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, labels: {v: "1"}}, spec: {replicas: 6, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "x:1"}]}}}}`
	hpa        = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: default}, spec: {minReplicas: 5, maxReplicas: 10, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`
)

// If a commit removes spec.replicas from a workload that has an autoscaler, the live value stays until
// the autoscaler sets it, and also if it never does. Without an autoscaler the field is removed.
func TestReplicasAreHandedOver(t *testing.T) {
	left := strings.Replace(deployment, "replicas: 6, ", "", 1)
	later := strings.Replace(left, `v: "1"`, `v: "2"`, 1)
	tests := map[string]struct {
		before, after []string
		scale         string // what the autoscaler does, if anything
		want          int64
	}{
		"in one commit":             {[]string{deployment}, []string{left, hpa}, "", 6},
		"and it scales":             {[]string{deployment}, []string{left, hpa}, `{"spec":{"replicas":8}}`, 8},
		"after the autoscaler came": {[]string{deployment, hpa}, []string{left, hpa}, "", 6},
		"without one":               {[]string{deployment}, []string{left}, "", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newControlled(t)
				c.start(placed(t, "web", test.before...))
				defer c.stop()
				deployments := c.of("apps", "v1", "deployments")
				expect := func(when string) {
					t.Helper()
					got, _, _ := unstructured.NestedInt64(c.live(deployments, "web").Object, "spec", "replicas")
					if got != test.want {
						t.Errorf("%s: %d replicas, want %d", when, got, test.want)
					}
				}
				c.set(placed(t, "web", test.after...))
				if test.scale != "" {
					c.patch(deployments, "web", "kube-controller-manager", test.scale)
				}
				c.settle()
				expect("left to the autoscaler")
				before := c.cluster.Requests()
				c.set(placed(t, "web", append([]string{later}, test.after[1:]...)...))
				sent := func(verb string) int {
					key := fleet.Key{Verb: verb, Group: "apps", Resource: "deployments"}
					return c.cluster.Requests()[key] - before[key]
				}
				if sent("APPLY") != 1 || sent("GET") != 0 {
					t.Errorf("%d applies and %d reads, want one apply", sent("APPLY"), sent("GET"))
				}
				expect("after the next commit")
				c.set(placed(t, "web", left))
				expect("without the autoscaler")
				c.set(placed(t, "web", later))
				expect("after another commit")
				c.mu.Lock()
				defer c.mu.Unlock()
				if len(c.seen.Unusual().Drifts) > 0 {
					t.Errorf("drift: %+v", c.seen.Unusual().Drifts)
				}
			})
		})
	}
}

// A commit that sets the replicas again and removes the autoscaler gets them, although the autoscaler is still there when
// the workload is applied.
func TestReplicasAreTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControlled(t)
		left := strings.Replace(deployment, "replicas: 6, ", "", 1)
		c.start(placed(t, "web", left, hpa))
		defer c.stop()
		deployments := c.of("apps", "v1", "deployments")
		c.patch(deployments, "web", "kube-controller-manager", `{"spec":{"replicas":8}}`)
		live := c.live(deployments, "web")
		entries := live.GetManagedFields()
		for i := range entries {
			if entries[i].Manager == "kube-controller-manager" {
				entries[i].Subresource = "scale" // which the server does not have
			}
		}
		live.SetManagedFields(entries)
		if _, err := deployments.Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.settle()
		c.set(placed(t, "web", deployment))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got, _, _ := unstructured.NestedInt64(c.live(deployments, "web").Object, "spec", "replicas"); got != 6 {
			t.Errorf("%d replicas, want 6", got)
		}
	})
}

// The rules of an aggregated ClusterRole are never written, and nobody fights about them.
func TestAggregatedRulesAreLeftAlone(t *testing.T) {
	const role = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: readers}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: RULES}`
	plain := strings.Replace(strings.Replace(role, "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, ", "", 1), "RULES", `[{apiGroups: [example.com], resources: [things], verbs: [get]}]`, 1)
	for name, test := range map[string]struct{ before, after string }{
		"empty rules":            {"", strings.Replace(role, "RULES", "[]", 1)},
		"rules of its own":       {"", strings.Replace(role, "RULES", `[{apiGroups: [""], resources: [pods], verbs: [get]}]`, 1)},
		"a role that had others": {plain, strings.Replace(role, "RULES", "[]", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newControlled(t)
				roles := c.client.Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"})
				rules := func() []any {
					list, _, _ := unstructured.NestedSlice(c.live(roles, "readers").Object, "rules")
					return list
				}
				if test.before != "" {
					c.start(placed(t, "web", test.before))
					c.set(placed(t, "web", test.after))
					if len(rules()) != 1 {
						t.Errorf("the rules were emptied: %v", rules())
					}
				} else {
					c.start(placed(t, "web", test.after))
				}
				defer c.stop()
				c.patch(roles, "readers", "clusterrole-aggregation-controller", `{"rules":[{"apiGroups":["example.com"],"resources":["things"],"verbs":["get","list"]}]}`)
				c.settle()
				version := c.live(roles, "readers").GetResourceVersion()
				c.agent.Check()
				c.settle()
				if live := c.live(roles, "readers"); len(rules()) != 1 || live.GetResourceVersion() != version {
					t.Errorf("it was written: %v", live)
				}
				c.expectNoDrift()
			})
		})
	}
}

// An injected CA bundle stays when Git takes out one with the same value and leaves it to the
// injector.
func TestInjectedBundleIsHandedOver(t *testing.T) {
	const bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
	const own = `{apiVersion: v1, kind: ConfigMap, metadata: {name: ca, namespace: default}, data: {service-ca.crt: "` + bundle + `", a: b}}`
	const left = `{apiVersion: v1, kind: ConfigMap, metadata: {name: ca, namespace: default, annotations: {service.beta.openshift.io/inject-cabundle: "true"}}, data: {a: b}}`
	for _, injected := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newControlled(t)
			c.start(placed(t, "web", own))
			defer c.stop()
			maps := c.of("", "v1", "configmaps")
			if injected {
				raw := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ca"},"data":{"service-ca.crt":"` + bundle + `"}}`
				if _, err := maps.Patch(t.Context(), "ca", types.ApplyPatchType, []byte(raw), metav1.PatchOptions{FieldManager: "injector"}); err != nil {
					t.Fatal(err)
				}
			}
			c.set(placed(t, "web", left))
			if got, _, _ := unstructured.NestedString(c.live(maps, "ca").Object, "data", "service-ca.crt"); got != bundle {
				t.Errorf("injected %t: it is %q", injected, got)
			}
			c.expectNoDrift()
		})
	}
}

const certificate = `{apiVersion: v1, kind: Secret, metadata: {name: web, namespace: default, labels: {v: "1"}}, type: kubernetes.io/tls, data: {tls.crt: "", tls.key: ""}}`

// A Secret that a program by contract has filled stays filled: also after a renewal, with new content and after
// a restart. What anybody else writes into it is reverted.
func TestFilledSecretIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControlled(t)
		c.start(placed(t, "web", certificate))
		defer func() { c.stop() }()
		secrets := c.of("", "v1", "secrets")
		expect := func(when, value string) {
			t.Helper()
			c.settle()
			if got, _, _ := unstructured.NestedString(c.live(secrets, "web").Object, "data", "tls.crt"); got != value {
				t.Errorf("%s, tls.crt is %q", when, got)
			}
		}
		fill := func(manager, value string) { c.patch(secrets, "web", manager, `{"data":{"tls.crt":"`+value+`"}}`) }
		expect("created", "")
		fill("cert-manager-certificates-issuing", "Yg==")
		expect("after it was issued", "Yg==")
		fill("cert-manager-certificates-issuing", "Yw==")
		expect("after it was renewed", "Yw==")
		c.set(placed(t, "web", strings.Replace(certificate, `"1"`, `"2"`, 1)))
		expect("with new content", "Yw==")
		c.stop()
		c.start(placed(t, "web", certificate))
		expect("after a restart", "Yw==")
		if v := c.live(secrets, "web").GetLabels()["v"]; v != "1" {
			t.Errorf("the label is %q", v)
		}
		c.expectNoDrift()
		fill("kubectl-edit", "YQ==")
		expect("after somebody wrote it", "")
	})
}

const canaryService = `{apiVersion: v1, kind: Service, metadata: {name: canary, namespace: default, labels: {v: "1"}}, spec: {selector: {app: web}, ports: [{port: 80}]}}`

// New content of a Service is applied without a read if nobody else has written the Service.
func TestServiceOfNoRolloutIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControlled(t)
		c.start(placed(t, "web", canaryService))
		defer func() { c.stop() }()
		c.settle()
		read := fleet.Key{Verb: "GET", Resource: "services"}
		before := c.cluster.Requests()[read]
		c.set(placed(t, "web", strings.Replace(canaryService, `v: "1"`, `v: "2"`, 1)))
		reads := c.cluster.Requests()[read] - before
		if live := c.live(c.of("", "v1", "services"), "canary"); live.GetLabels()["v"] != "2" || reads != 0 {
			t.Errorf("%d reads; the labels are %v", reads, live.GetLabels())
		}
	})
}

// The hash that Argo Rollouts adds to the selector of a Service stays, also with new content and after a restart. What anybody
// else changes in the selector is reverted.
func TestHashOfARolloutStaysInASelector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControlled(t)
		c.start(placed(t, "web", canaryService))
		defer func() { c.stop() }()
		services := c.of("", "v1", "services")
		expect := func(when, app, hash string) {
			t.Helper()
			c.settle()
			got, _, _ := unstructured.NestedStringMap(c.live(services, "canary").Object, "spec", "selector")
			if got["app"] != app || got["rollouts-pod-template-hash"] != hash {
				t.Errorf("%s, the selector is %v", when, got)
			}
		}
		choose := func(hash string) {
			c.patch(services, "canary", "rollouts-controller", `{"metadata":{"annotations":{"argo-rollouts.argoproj.io/managed-by-rollouts":"web"}},"spec":{"selector":{"rollouts-pod-template-hash":"`+hash+`"}}}`)
		}
		expect("created", "web", "")
		for _, hash := range []string{"5d9", "7c4", "5d9", "7c4"} {
			choose(hash)
			expect("chosen", "web", hash)
		}
		c.set(placed(t, "web", strings.Replace(canaryService, "app: web", "app: new", 1)))
		expect("with new content", "new", "7c4")
		c.stop()
		c.start(placed(t, "web", canaryService))
		expect("after a restart", "web", "7c4")
		c.patch(services, "canary", "kubectl-edit", `{"spec":{"selector":{"app":"other"}}}`)
		expect("after somebody changed it", "web", "7c4")
		c.patch(services, "canary", "rollouts-controller", `{"metadata":{"annotations":{"argo-rollouts.argoproj.io/managed-by-rollouts":null}},"spec":{"selector":{"rollouts-pod-template-hash":null}}}`)
		expect("without the Rollout", "web", "")
	})
}
