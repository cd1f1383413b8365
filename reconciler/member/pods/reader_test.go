package pods

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A namespace answers requests for what is in the namespace web. What it does not have is an empty list, or not
// found.
type namespace struct {
	t     *testing.T
	has   map[string]string // YAML by path and query
	asked []string
}

func (n *namespace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	path := strings.Trim(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/web/")+" "+q.Get("labelSelector")+" "+q.Get("fieldSelector"), " ")
	n.asked = append(n.asked, path)
	text, has := n.has[path]
	switch {
	case text == "forbidden":
		apiserver.Refuse(w, http.StatusForbidden, "forbidden")
		return
	case !has && strings.Contains(r.URL.Path, "claims/"):
		apiserver.Refuse(w, http.StatusNotFound, "not found")
		return
	case !has:
		text = "items: []"
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil || !json.Valid(raw) {
		n.t.Errorf("%s: %v", path, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(raw) //nolint:errcheck // the client would see it
}

// What pods leave open is in events: why they cannot be created, why their volumes are missing, and why
// their claims are pending. Nothing is read that cannot add anything.
func TestEventsSayWhatPodsDoNot(t *testing.T) {
	const (
		denied  = `{type: Warning, reason: FailedCreate, message: "create Pod web-0 in StatefulSet web failed", lastTimestamp: "2026-01-01T00:05:00Z", involvedObject: {kind: StatefulSet, name: web, uid: u}}`
		earlier = `{type: Warning, reason: FailedCreate, message: "an earlier reason", lastTimestamp: "2026-01-01T00:04:00Z", involvedObject: {kind: StatefulSet, name: web, uid: u}}`
		another = `{type: Warning, reason: FailedCreate, message: "of the one before", lastTimestamp: "2026-01-01T00:06:00Z", involvedObject: {kind: StatefulSet, name: web, uid: other}}`
		newer   = `{type: Warning, reason: FailedCreate, message: "as a series", eventTime: "2026-01-01T00:01:00.123456Z", series: {count: 7, lastObservedTime: "2026-01-01T00:07:00.123456Z"}, lastTimestamp: null, involvedObject: {kind: StatefulSet, name: web, uid: u}}`
		about   = "events  involvedObject.kind=StatefulSet,involvedObject.name=web"
		ready   = `{metadata: {name: web-0, creationTimestamp: "2026-01-01T00:0%:00Z"}, status: {phase: Running, containerStatuses: [{name: web, ready: true, state: {running: {}}}]}}`
		making  = `{metadata: {name: web-0}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}, {name: e, ephemeral: {}}, {name: c}]}, status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ContainerCreating}}}]}}`
		noNode  = `{metadata: {name: web-0}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", message: "unbound claims"}]}}`
		pulls   = `{metadata: {name: web-0}, status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ImagePullBackOff}}}]}}`
		crashes = `{metadata: {name: web-0}, status: {phase: Running, containerStatuses: [{name: web, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}}]}}`
		claims  = "events  involvedObject.kind=PersistentVolumeClaim,involvedObject.name=data"
		mounts  = "events  involvedObject.kind=Pod,involvedObject.name=web-0"
	)
	items := func(all ...string) string { return "items: [" + strings.Join(all, ", ") + "]" }
	at := func(minute string) string { return strings.Replace(ready, "%", minute, 1) }
	set := api.ID{Group: "apps", Kind: "StatefulSet", Namespace: "web", Name: "web"}
	tests := map[string]struct {
		id       api.ID
		selector string
		has      map[string]string
		want     string
		blocked  bool
		requests int
	}{
		"no pod, and an event":       {set, "a=b", map[string]string{about: items(earlier, denied, another)}, "FailedCreate: create Pod web-0 in StatefulSet web failed", true, 2},
		"a series of events":         {set, "a=b", map[string]string{about: items(newer, denied)}, "FailedCreate: as a series", true, 2},
		"no pod, and no event":       {set, "a=b", nil, "", false, 2},
		"some pods, and an event":    {set, "a=b", map[string]string{"pods a=b": items(at("4")), about: items(denied)}, "FailedCreate: create Pod web-0 in StatefulSet web failed", true, 2},
		"an event before the newest": {set, "a=b", map[string]string{"pods a=b": items(at("6")), about: items(denied)}, "", false, 2},
		"a pod that says why":        {set, "a=b", map[string]string{"pods a=b": items(pulls), about: items(denied)}, "pod web-0, container web: ImagePullBackOff", true, 1},
		"a pod that crashes":         {set, "a=b", map[string]string{"pods a=b": items(crashes)}, "pod web-0, container web: CrashLoopBackOff", false, 1},
		"events are forbidden":       {set, "a=b", map[string]string{about: "forbidden"}, "the reason is not known: gitfleet may not read events there", false, 2},
		"they are, and pods say it":  {set, "a=b", map[string]string{"pods a=b": items(making), "persistentvolumeclaims/data": "forbidden", "persistentvolumeclaims/web-0-e": "forbidden", about: "forbidden", mounts: "forbidden"}, "pod web-0, container web: ContainerCreating", false, 5},
		"a volume":                   {set, "a=b", map[string]string{"pods a=b": items(making), "persistentvolumeclaims/data": "status: {phase: Bound}", "persistentvolumeclaims/web-0-e": "status: {phase: Bound}", mounts: items(`{type: Warning, reason: FailedMount, message: "configmap \"c\" not found"}`, `{type: Warning, reason: Unhealthy, message: "secret output", lastTimestamp: "2026-01-01T00:00:00Z"}`)}, `pod web-0, container web: ContainerCreating: FailedMount: configmap "c" not found`, true, 5},
		"a claim that is missing":    {set, "a=b", map[string]string{"pods a=b": items(making)}, "pod web-0, container web: ContainerCreating; the PersistentVolumeClaim data does not exist", true, 3},
		"a claim that is pending":    {set, "a=b", map[string]string{"pods a=b": items(noNode), "persistentvolumeclaims/data": "status: {phase: Pending}", claims: items(`{type: Normal, reason: FailedBinding, message: "no storage class is set"}`, `{type: Normal, reason: Other, lastTimestamp: "2026-01-01T00:05:00Z"}`)}, "pod web-0: Pending: unbound claims; the PersistentVolumeClaim data is pending: FailedBinding: no storage class is set", true, 3},
		"a claim that waits":         {set, "a=b", map[string]string{"pods a=b": items(noNode), "persistentvolumeclaims/data": "status: {phase: Pending}", claims: items(`{type: Normal, reason: WaitForFirstConsumer}`)}, "pod web-0: Pending: unbound claims", true, 3},
		"the claim itself":           {api.ID{Kind: "PersistentVolumeClaim", Namespace: "web", Name: "data"}, "", map[string]string{"persistentvolumeclaims/data": "status: {phase: Pending}", claims: items(`{type: Warning, reason: ProvisioningFailed, message: "no such class"}`)}, "the PersistentVolumeClaim data is pending: ProvisioningFailed: no such class", true, 2},
		"a Pod":                      {api.ID{Kind: "Pod", Namespace: "web", Name: "web-0"}, "", map[string]string{"pods  metadata.name=web-0": items(pulls)}, "pod web-0, container web: ImagePullBackOff", true, 1},
		"a Deployment":               {api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}, "a=b", nil, "", false, 1},
		"a CronJob": {api.ID{Group: "batch", Kind: "CronJob", Namespace: "web", Name: "nightly"}, "job-name", map[string]string{
			"pods job-name": items(strings.Replace(pulls, "name: web-0", "name: other-1, labels: {job-name: nightly-other-1}", 1)),
			"events  involvedObject.kind=Job,reason=FailedCreate": items(strings.NewReplacer("StatefulSet", "Job", "name: web,", "name: nightly-29, ").Replace(denied), strings.NewReplacer("create Pod", "of another", "name: web,", "name: nightly-other-29, ", ":05:", ":08:").Replace(denied)),
		}, "FailedCreate: create Pod web-0 in Job web failed", true, 2},
		"a Rollout of Argo": {api.ID{Group: "argoproj.io", Kind: "Rollout", Namespace: "web", Name: "web"}, "a=b", map[string]string{
			"events  involvedObject.kind=ReplicaSet,reason=FailedCreate": items(strings.NewReplacer("StatefulSet", "ReplicaSet", "name: web,", "name: web-5b9f9b86c4, ").Replace(denied)),
		}, "FailedCreate: create Pod web-0 in ReplicaSet web failed", true, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := &namespace{t: t, has: test.has}
			tr := trackerAt(t, server)
			said, _, err := diagnose(t.Context(), tr.conn, question{id: test.id, uid: "u", selector: test.selector})
			if err != nil || said.Why != test.want || said.Blocked != test.blocked || len(server.asked) != test.requests {
				t.Errorf("it says %q, blocked %t, %v\nwant %q; it asked %q", said.Why, said.Blocked, err, test.want, server.asked)
			}
		})
	}
}

// What a server says of a pod is short, whatever its name is.
func TestNamesOfPodsAreShort(t *testing.T) {
	server := &namespace{t: t, has: map[string]string{"pods a=b": "items: [{metadata: {name: " + strings.Repeat("a", 2<<20) + "}, status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ImagePullBackOff}}}]}}]"}}
	said, _, err := diagnose(t.Context(), trackerAt(t, server).conn, question{id: api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}, selector: "a=b"})
	if err != nil || said.Why == "" || len(said.Why)+len(said.Pod) > 2*maxMessage {
		t.Errorf("it says %d bytes about a pod whose name has %d: %v", len(said.Why), len(said.Pod), err)
	}
}

// A workload that counts as available is read once it stays without a pod that has started, is not
// available if something blocks its pods, and is not read again once they have started.
func TestBlockedAlthoughItCountsAsAvailable(t *testing.T) {
	server := &podsAsked{pages: map[string]string{}}
	tr := trackerAt(t, server)
	waits := health.Health{State: health.NotTrackable, Message: "no pod of the Job has started"}
	status := func(phase, container string) string {
		return `{"items":[{"metadata":{"name":"once-1"},"status":{"phase":"` + phase + `","containerStatuses":[{"name":"web","state":{` + container + `}}]}}]}`
	}
	for i, step := range []struct {
		page    string
		want    Finding
		settled bool
	}{
		{status("Pending", `"waiting":{"reason":"ContainerCreating"}`), Finding{}, false},
		{status("Pending", `"waiting":{"reason":"ErrImagePull"}`), Finding{Why: "pod once-1, container web: ErrImagePull", Pod: "once-1", Blocked: true}, false},
		{status("Running", `"waiting":{"reason":"CrashLoopBackOff"}`), Finding{}, true},
	} {
		server.pages[""] = step.page
		tr.Observe(webID, waits, 1)
		tr.due(t)
		if got := tr.Observe(webID, waits, 1); got != step.want || tr.stuck[webID].settled != step.settled {
			t.Errorf("%d: %+v, want %+v; %+v", i, got, step.want, tr.stuck[webID])
		}
	}
	server.take()
	if tr.due(t); len(server.take()) > 0 {
		t.Error("pods that have started are read again")
	}
	server.pages[""] = status("Pending", `"waiting":{"reason":"ErrImagePull"}`)
	another := health.Health{State: health.NotTrackable, Message: "its Job once-2 has not finished"}
	tr.Observe(webID, another, 1)
	tr.due(t)
	for _, h := range []health.Health{another, waits} {
		if !tr.Observe(webID, h, 1).Blocked {
			t.Errorf("what was found of %q is forgotten", h.Message)
		}
	}
	if tr.Observe(webID, health.Health{State: health.NotTrackable}, 1); !tr.stuck[webID].well {
		t.Error("a Job whose pods run is kept")
	}
	if got := (Finding{}); tr.Observe(api.ID{Kind: "ConfigMap", Name: "x"}, waits, 1) != got || len(tr.stuck) > 1 {
		t.Errorf("something without pods is tracked: %v", tr.stuck)
	}
}
