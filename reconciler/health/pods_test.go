package health

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestWhy(t *testing.T) {
	const (
		pulling = `{metadata: {name: web-2}, status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ImagePullBackOff, message: "Back-off pulling\n  image web:2"}}}]}}`
		crashed = `{metadata: {name: web-1}, status: {phase: Running, containerStatuses: [{name: ok, ready: true, state: {running: {}}}, {name: web, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff, message: "back-off 40s restarting"}}, lastState: {terminated: {exitCode: 1, reason: Error, message: "canary: password=x"}}}]}}`
		fine    = `{metadata: {name: web-0}, status: {phase: Running, containerStatuses: [{name: web, ready: true, state: {running: {}}}]}}`
		pending = `{metadata: {name: web-0}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 Insufficient cpu."}]}}`
		making  = `{metadata: {name: web-0}, status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ContainerCreating}}}]}}`
	)
	tests := map[string]struct {
		pods string
		want string
	}{
		"none":             {"", ""},
		"all is well":      {fine, ""},
		"no image":         {fine + "," + pulling, "pod web-2, container web: ImagePullBackOff: Back-off pulling image web:2"},
		"a crash":          {crashed, "pod web-1, container web: CrashLoopBackOff (exit code 1)"},
		"the first of two": {pulling + "," + crashed, "pod web-1, container web: CrashLoopBackOff (exit code 1)"},
		"out of memory":    {`{metadata: {name: web-0}, status: {containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`, "pod web-0, container web: CrashLoopBackOff (exit code 137, OOMKilled)"},
		"before it starts": {`{metadata: {name: web-0}, status: {phase: Pending, initContainerStatuses: [{name: setup, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "db" not found'}}}], containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]}}`, `pod web-0, container setup: CreateContainerConfigError: secret "db" not found`},
		"no node":          {pending, "pod web-0: Pending: 0/3 nodes are available: 3 Insufficient cpu."},
		"the plainer":      {pending + "," + crashed, "pod web-1, container web: CrashLoopBackOff (exit code 1)"},
		"between two runs": {`{metadata: {name: web-0}, status: {containerStatuses: [{name: web, state: {terminated: {exitCode: 2}}}]}}`, "pod web-0, container web: Terminated (exit code 2)"},
		"a job's end":      {`{metadata: {name: web-0}, status: {phase: Succeeded, containerStatuses: [{name: web, state: {terminated: {exitCode: 0, reason: Completed}}}]}}`, ""},
		"evicted":          {`{metadata: {name: web-0}, status: {phase: Failed, reason: Evicted, message: "The node was low on resource: memory."}}`, "pod web-0: Evicted: The node was low on resource: memory."},
		"not ready":        {`{metadata: {name: web-0}, status: {phase: Running, containerStatuses: [{name: web, restartCount: 2, state: {running: {}}}]}}`, "pod web-0, container web: running, but not ready (restarted 2 times)"},
		"being made":       {making, "pod web-0, container web: ContainerCreating"},
		"on its way out":   {`{metadata: {name: web-0, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Failed, reason: Evicted}}`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Diagnose(podsOf(t, test.pods)).Why; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func podsOf(t *testing.T, pods string) []Pod {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte("[" + pods + "]"))
	if err != nil {
		t.Fatal(err)
	}
	var out []Pod
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Pods that pull images, wait for a node or are not ready yet are starting; pods that the
// kubelet cannot start are not. Pods of an older template do not matter.
func TestStart(t *testing.T) {
	pod := func(template, created, status string) string {
		return "{metadata: {name: web-" + template + ", creationTimestamp: '2026-01-01T00:00:0" + created + "Z', labels: {pod-template-hash: '" + template + "'}}, status: " + status + "}"
	}
	waiting := func(reason string) string {
		return "{phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: " + reason + "}}}]}"
	}
	const (
		running   = "{phase: Running, containerStatuses: [{name: web, state: {running: {}}}]}"
		restarted = "{phase: Running, containerStatuses: [{name: web, restartCount: 1, state: {running: {}}}]}"
		evicted   = "{phase: Failed, reason: Evicted, containerStatuses: [{name: web, state: {terminated: {exitCode: 137}}}]}"
		initFails = "{phase: Pending, initContainerStatuses: [{name: setup, state: {terminated: {exitCode: 1}}}], containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]}"
		noNode    = "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}"
	)
	tests := map[string]struct {
		pods string
		want Start
	}{
		"none":                           {"", Starting},
		"being made":                     {pod("1", "1", waiting("ContainerCreating")), Starting},
		"no node yet":                    {pod("1", "1", noNode), Starting},
		"running, not ready":             {pod("1", "1", running), Starting},
		"running again, not ready":       {pod("1", "1", restarted), Restarted},
		"no image":                       {pod("1", "1", waiting("ImagePullBackOff")), NotStarting},
		"no image, first try":            {pod("1", "1", waiting("ErrImagePull")), NotStarting},
		"no such secret":                 {pod("1", "1", waiting("CreateContainerConfigError")), NotStarting},
		"crashes":                        {pod("1", "1", waiting("CrashLoopBackOff")), NotStarting},
		"an init container ends badly":   {pod("1", "1", initFails), NotStarting},
		"one of two":                     {pod("1", "1", running) + "," + pod("1", "1", waiting("CrashLoopBackOff")), NotStarting},
		"evicted, and replaced":          {pod("1", "1", evicted) + "," + pod("1", "2", running), Starting},
		"the old template crashes":       {pod("1", "1", waiting("CrashLoopBackOff")) + "," + pod("2", "2", waiting("ContainerCreating")), Starting},
		"the new template crashes":       {pod("1", "1", running) + "," + pod("2", "2", waiting("CrashLoopBackOff")), NotStarting},
		"back to a template, by rolling": {pod("2", "2", waiting("CrashLoopBackOff")) + "," + pod("1", "3", running), Starting},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Diagnose(podsOf(t, test.pods)).Start; got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
	got := Diagnose(podsOf(t, pod("1", "1", waiting("CrashLoopBackOff"))+","+pod("2", "2", waiting("ContainerCreating")))).Why
	if want := "pod web-2, container web: ContainerCreating"; got != want {
		t.Errorf("an update of what crashes says %q, want %q", got, want)
	}
}

// The pods of an object that its controller has not observed yet are not considered.
func TestUnseen(t *testing.T) {
	for spec, want := range map[string]bool{
		"{}":                      true,
		"{observedGeneration: 1}": true,
		"{observedGeneration: 2}": false,
		"{observedGeneration: 2, updatedReplicas: 1, availableReplicas: 1}":   false,
		"{observedGeneration: 2, updatedReplicas: 1, unavailableReplicas: 1}": false,
	} {
		if got := Of(object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: "+spec+"}")).Unseen; got != want {
			t.Errorf("%s: %t", spec, got)
		}
	}
}
