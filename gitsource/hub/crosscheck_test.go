package hub

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// problemsOf loads a repository, and returns its problems.
func problemsOf(t *testing.T, files map[string]string) []string {
	t.Helper()
	return problemsWith(t, files, Options{})
}

func problemsWith(t *testing.T, files map[string]string, options Options) []string {
	t.Helper()
	s, err := load(Commit{}, newMemoryTree(files), options)
	var all []string
	if refused := (*LoadError)(nil); errors.As(err, &refused) {
		for _, p := range refused.Problems {
			all = append(all, p.Marked())
		}
		return all
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Warnings {
		all = append(all, p.Marked())
	}
	return all
}

const (
	placementHead = "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\nmetadata: {name: NAME}\nspec:\n  resourceSelectors: [{group: '', version: v1, kind: Namespace}]\n"
	memberText    = "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\nmetadata: {name: east}\n"
	overrideText  = "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceOverride\nmetadata: {name: NAME, namespace: web}\nspec:\n  resourceSelectors: [{group: '', version: v1, kind: Pod, name: a}]\n" +
		"  policy: {overrideRules: [{clusterSelector: {}, overrideType: Delete}]}\n"
)

func named(text, name string) string { return strings.ReplaceAll(text, "NAME", name) }

// What refers to an object with problems of its own does not say that the object is missing: only its own problems are reported.
func TestReferencesToInvalidObjects(t *testing.T) {
	const group = "apiVersion: placement.kubernetes-fleet.io/v1beta1\n"
	const (
		place    = placementHead + "  strategy: {type: External}\n"
		strategy = group + "kind: ClusterStagedUpdateStrategy\nmetadata: {name: slow}\nspec: {stages: [{name: one, labelSelector: {}, afterStageTasks: [{type: Approval}, {type: Gate, gateName: bake}]}]}\n"
		gate     = "apiVersion: gitfleet.dev/v1alpha1\nkind: RolloutGate\nmetadata: {name: bake}\nspec: {soak: {duration: 10m}}\n"
		run      = group + "kind: ClusterStagedUpdateRun\nmetadata: {name: web-1}\nspec: {placementName: web, stagedRolloutStrategyName: slow, state: Run}\n"
		approval = group + "kind: ClusterApprovalRequest\nmetadata: {name: web-1-after-one}\nspec: {parentStageRollout: web-1, targetStage: one}\n"
	)
	all := strings.Join([]string{named(place, "web"), strategy, gate, run, approval}, "---\n")
	asksForRuns := strings.Replace(all, "{name: web}", "{name: web, annotations: {gitfleet.dev/staged-update-strategy: slow}}", 1)
	for name, test := range map[string]struct{ text, old, new, want string }{
		"nothing is invalid":         {all, "10m", "10m", ""},
		"the strategy":               {all, "name: one", "name: One", "spec.stages[0].name"},
		"for every content":          {asksForRuns, "name: one", "name: One", "spec.stages[0].name"},
		"the gate":                   {all, "10m", "soon", "spec.soak.duration"},
		"the run":                    {all, "state: Run", "state: Go", "spec.state"},
		"the placement":              {all, "kind: Namespace}", "kind: Namespace, nam: web}", "spec.resourceSelectors[0].nam"},
		"a strategy that is missing": {all, "StrategyName: slow", "StrategyName: sloe", "spec.stagedRolloutStrategyName"},
	} {
		got := problemsOf(t, map[string]string{"all.yaml": strings.Replace(test.text, test.old, test.new, 1)})
		if want := test.want; (want == "") != (len(got) == 0) || len(got) > 1 || want != "" && !strings.Contains(got[0], want+": ") {
			t.Errorf("%s: %s, want one about %q", name, strings.Join(got, "\n"), want)
		}
	}
}

// A reference to a name that the commit does not have is a warning: the object may come with the
// next commit.
func TestReferencesToMissingObjects(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a cluster":                {named(placementHead, "p") + "  policy: {placementType: PickFixed, clusterNames: [east]}\n", ""},
		"a missing cluster":        {named(placementHead, "p") + "  policy:\n    placementType: PickFixed\n    clusterNames: [mars]\n", "p.yaml:8: spec.policy.clusterNames[0]: the commit has no MemberCluster mars, so it is not chosen; add it, or remove the name (warning)"},
		"a misspelt cluster":       {named(placementHead, "p") + "  policy: {placementType: PickFixed, clusterNames: [eest]}\n", "p.yaml:6: spec.policy.clusterNames[0]: the commit has no MemberCluster eest, so it is not chosen; did you mean east? (warning)"},
		"affinity":                 {named(placementHead, "p") + "  policy: {affinity: {placementAffinity: [{name: p}]}}\n", ""},
		"missing affinity":         {named(placementHead, "p") + "  policy: {affinity: {placementAffinity: [{name: q}]}}\n", "p.yaml:6: spec.policy.affinity.placementAffinity[0].name: the commit has no ClusterResourcePlacement q; add it, or correct the name (warning)"},
		"missing anti-affinity":    {named(placementHead, "p") + "  policy: {affinity: {placementAntiAffinity: [{name: q}]}}\n", "p.yaml:6: spec.policy.affinity.placementAntiAffinity[0].name: the commit has no ClusterResourcePlacement q; add it, or correct the name (warning)"},
		"a placement":              {named(overrideText, "o") + "  placement: {name: web, scope: Namespaced}\n---\n" + strings.NewReplacer("Cluster", "", "NAME}", "web, namespace: web}", "kind: Namespace", "kind: Pod").Replace(placementHead), ""},
		"a placement of the fleet": {named(overrideText, "o") + "  placement: {name: web}\n", "p.yaml:7: spec.placement.name: the commit has no ClusterResourcePlacement web, so this override has no effect; remove it, or correct the name (warning)"},
		"a missing placement":      {named(overrideText, "o") + "  placement: {name: web, scope: Namespaced}\n", "p.yaml:7: spec.placement.name: the commit has no ResourcePlacement web, so this override has no effect; remove it, or correct the name (warning)"},
	} {
		t.Run(name, func(t *testing.T) {
			checkLines(t, "problems", problemsOf(t, map[string]string{"east.yaml": memberText, "p.yaml": test.text}), one(test.want))
		})
	}
}

// Two overrides must not select the same object, wherever they are.
func TestOverridesOfOneObject(t *testing.T) {
	const refused = "invalid resource selector v1 Pod a: the resource has been selected by both "
	checkLines(t, "two", problemsOf(t, map[string]string{"a.yaml": named(overrideText, "one"), "b.yaml": named(overrideText, "two")}), []string{
		"a.yaml:5: spec.resourceSelectors[0]: " + refused + "one and two (b.yaml:1), which is not supported; select it in one of them",
		"b.yaml:5: spec.resourceSelectors[0]: " + refused + "two and one (a.yaml:1), which is not supported; select it in one of them",
	})
	checkLines(t, "of two namespaces", problemsOf(t, map[string]string{
		"a.yaml": named(overrideText, "one"), "b.yaml": strings.ReplaceAll(named(overrideText, "two"), "namespace: web", "namespace: db"),
	}), nil)
}

// An object that is defined more than once is reported at every position, with some of the
// others.
func TestDuplicates(t *testing.T) {
	files := map[string]string{"a.yaml": namespace("web"), "b.yaml": namespace("other") + "---\n" + namespace("web")}
	const text, end = ": Namespace/web is defined more than once: also at ", "; remove all but one"
	checkLines(t, "two", problemsOf(t, files), []string{"a.yaml:1" + text + "b.yaml:5" + end, "b.yaml:5" + text + "a.yaml:1" + end})
	files = map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		files[name+".yaml"] = namespace("web")
	}
	if got, want := problemsOf(t, files)[0], "a.yaml:1"+text+"1 more places, b.yaml:1, c.yaml:1, d.yaml:1"+end; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The scope of a kind that is not built in is that of the commit's definition. Without one, it
// is what the manifest says.
func TestScopesOfCustomKinds(t *testing.T) {
	const thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a%s}\n"
	in, without := fmt.Sprintf(thing, ", namespace: web"), fmt.Sprintf(thing, "")
	for _, test := range []struct{ scope, text, want string }{
		{"Namespaced", in, ""},
		{"Namespaced", without, "a.yaml:1: metadata.namespace: missing: a Thing is namespaced; write the namespace"},
		{"Cluster", without, ""},
		{"Cluster", in, "a.yaml:1: metadata.namespace: a Thing is cluster-scoped; this is ignored, remove it (warning)"},
		{"", in, ""},
		{"", without, "a.yaml:1: metadata.namespace: missing, so Thing is treated as cluster-scoped, since the commit does not define the kind; if it is namespaced, write the namespace, or commit its definition (warning)"},
		{"", strings.ReplaceAll(without, "Thing", "ClusterThing"), ""},
		{"", strings.ReplaceAll(without, "example.com/v1\nkind: Thing", "gateway.networking.k8s.io/v1\nkind: GatewayClass"), ""},
		{"", strings.ReplaceAll(without, "example.com/v1\nkind: Thing", "postgresql.cnpg.io/v1\nkind: Cluster"),
			"a.yaml:1: metadata.namespace: missing: the kind Cluster is usually namespaced, and API servers then refuse an object without a namespace; write the namespace, or commit the definition of the kind if it is cluster-scoped (warning)"},
		{"Namespaced", strings.ReplaceAll(named(placementHead, "p"), "{group: '', version: v1, kind: Namespace}", "{group: example.com, version: v1, kind: Thing}"),
			"a.yaml:5: spec.resourceSelectors[0].kind: Thing is not a cluster scoped resource; select its Namespace by name with selectionScope: NamespaceWithResourceSelectors beside it, or use a ResourcePlacement"},
		{"Cluster", "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceEnvelope\nmetadata: {name: e, namespace: web}\ndata:\n  a: {apiVersion: example.com/v1, kind: Thing, metadata: {name: a, namespace: web}}\n",
			"a.yaml:5: data.a.metadata.namespace: in ResourceEnvelope.placement.kubernetes-fleet.io/web/e: a cluster scoped Thing cannot be wrapped in a ResourceEnvelope; use a ClusterResourceEnvelope"},
	} {
		files := map[string]string{"a.yaml": test.text}
		if test.scope != "" {
			files["crd.yaml"] = crdText(test.scope)
		}
		checkLines(t, test.scope+" "+test.text, problemsOf(t, files), one(test.want))
	}
}

// The snapshot does not depend on how the objects are distributed over files and documents.
func TestSnapshotDoesNotDependOnFiles(t *testing.T) {
	objects := []string{
		namespace("a"), namespace("b"), memberText, named(placementHead, "p"), named(placementHead, "q"), named(overrideText, "o"), crdText("Namespaced"),
		"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t, namespace: a}\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: a}\ndata: {a: b}\n",
	}
	content := func(t interface{ Fatal(...any) }, files map[string]string) string {
		s, err := load(Commit{}, newMemoryTree(files), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, o := range s.Objects {
			fmt.Fprintln(&b, o.ID, o.Hash)
		}
		for _, p := range s.Placements {
			fmt.Fprintln(&b, p.Key, p.SpecHash)
		}
		for _, c := range s.Clusters {
			fmt.Fprintln(&b, c.Name, c.Hash)
		}
		for _, o := range s.Overrides {
			fmt.Fprintln(&b, o.Name, o.Hash)
		}
		return b.String()
	}
	want := content(t, map[string]string{"all.yaml": strings.Join(objects, "---\n")})
	rapid.Check(t, func(t *rapid.T) {
		files := map[string]string{}
		for _, text := range rapid.Permutation(objects).Draw(t, "order") {
			name := rapid.SampledFrom([]string{"a.yaml", "b.yml", "dir/c.yaml"}).Draw(t, "file")
			files[name] += "---\n" + text
		}
		if got := content(t, files); got != want {
			t.Fatalf("the snapshot has\n%s\nand from one file\n%s", got, want)
		}
	})
}

// Windows that match nothing, or that exclude each other, are reported where they are.
func TestWindowsTogether(t *testing.T) {
	window := func(name, spec string) string {
		return "apiVersion: gitfleet.dev/v1alpha1\nkind: RolloutWindow\nmetadata: {name: " + name + "}\nspec:\n  " + spec + "\n"
	}
	const nights, noNights = "allow: [{schedule: 0 22 * * *, duration: 2h}]", "exclude: [{schedule: 0 21 * * *, duration: 4h}]"
	files := map[string]string{"east.yaml": memberText, "p.yaml": named(placementHead, "web"), "a.yaml": window("a", nights), "b.yaml": window("b", noNights)}
	checkLines(t, "never open together", problemsOf(t, files), []string{
		"b.yaml:1: spec: the windows a and b are never open together, so crp/web would never get new content on east; change their periods or selectors",
	})
	files["b.yaml"] = window("b", noNights+"\n  clusterSelector:\n    matchLabels: {region: eu}")
	checkLines(t, "no cluster", problemsOf(t, files), []string{
		"b.yaml:6: spec.clusterSelector: matches no cluster of the commit, so the window has no effect; correct the labels, or remove the window (warning)",
	})
	files["b.yaml"] = window("b", "allow:\n  - schedule: 0 22 * *\n    duration: 2h\n    timeZone: Mars/Base")
	checkLines(t, "invalid", problemsOf(t, files), []string{
		"b.yaml:6: spec.allow[0].schedule: \"0 22 * *\" is no cron expression (expected exactly 5 fields, found 4: [0 22 * *]); write five fields, such as \"0 22 * * 6\" for Saturdays at 22:00",
	})
}

// A gate that is missing, that says nothing, or that nothing refers to is reported where it is, as are tasks that refer to none.
func TestGates(t *testing.T) {
	gate := func(spec string) string {
		return "apiVersion: gitfleet.dev/v1alpha1\nkind: RolloutGate\nmetadata: {name: soak}\nspec: " + spec + "\n"
	}
	strategy := func(before, after string) string {
		return "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterStagedUpdateStrategy\nmetadata: {name: careful}\nspec:\n  stages:\n  - name: canary\n" +
			"    labelSelector: {}\n    beforeStageTasks: [" + before + "]\n    afterStageTasks:\n    - " + after + "\n"
	}
	const task, soak = "{type: Gate, gateName: soak}", "{soak: {duration: 1h}}"
	job := func(fields, metadata, spec, pod string) string {
		return "{job: {" + fields + ", template: {" + metadata + "spec: {" + spec + "template: {spec: {" + pod + "}}}}}}"
	}
	const checks, pod = "namespace: checks", "restartPolicy: Never, containers: [{name: smoke, image: example.com/smoke}]"
	for name, test := range map[string]struct{ gate, strategy, want string }{
		"good":             {gate(soak), strategy("", task), ""},
		"missing":          {"", strategy("", task), "s.yaml:10: spec.stages[0].afterStageTasks[0].gateName: the commit has no RolloutGate soak; add it, or correct the name"},
		"unused":           {gate(soak), strategy("", "{type: Approval}"), "g.yaml:1: metadata.name: no strategy has a task of type Gate with this name, so the gate has no effect; remove it, or add the task (warning)"},
		"empty":            {gate("{}"), strategy("", task), "g.yaml:4: spec: no check is set; set one of soak, prometheus, http, objects or job"},
		"no duration":      {gate("{soak: {duration: soon}}"), strategy("", task), "g.yaml:4: spec.soak.duration: \"soon\" is not a duration from 1s to 366 days; write for example 30m or 24h"},
		"prometheus":       {gate("\n  prometheus:\n    address: https://prometheus.example.com\n    query: up\n    condition: \"== 1\"\n    duration: 10m"), strategy("", task), ""},
		"no address":       {gate("{prometheus: {query: up, condition: '== 1'}}"), strategy("", task), "g.yaml:4: spec.prometheus.address: required, and missing; add it"},
		"no scheme":        {gate("{prometheus: {address: prometheus, query: up, condition: '== 1'}}"), strategy("", task), `g.yaml:4: spec.prometheus.address: "prometheus" is not an address such as https://prometheus.example.com`},
		"a password":       {gate("{prometheus: {address: 'https://u:p@x', query: up, condition: '== 1'}}"), strategy("", task), "g.yaml:4: spec.prometheus.address: it has credentials; write them into the configuration of the daemon"},
		"no condition":     {gate("{prometheus: {address: 'https://x', query: up, condition: about 1}}"), strategy("", task), `g.yaml:4: spec.prometheus.condition: "about 1" is not an operator and a number; write for example "< 0.01"`},
		"too often":        {gate("{prometheus: {address: 'https://x', query: up, condition: '== 1', interval: 1s}}"), strategy("", task), `g.yaml:4: spec.prometheus.interval: "1s" is not a duration from 5s to 366 days`},
		"no API version":   {gate("{objects: {kind: Deployment, condition: 'true'}}"), strategy("", task), "g.yaml:4: spec.objects.apiVersion: required, and missing; add it"},
		"no version":       {gate("{objects: {apiVersion: apps/, kind: Deployment, condition: 'true'}}"), strategy("", task), `g.yaml:4: spec.objects.apiVersion: "apps/" is not an API version; write for example apps/v1`},
		"a Secret":         {gate("{objects: {apiVersion: v1, kind: Secret, condition: 'true'}}"), strategy("", task), "g.yaml:4: spec.objects.kind: a gate does not read Secrets, since what it answers is shown"},
		"a typing error":   {gate("{objects: {apiVersion: apps/v1, kind: Deployment, condition: objct.status.ready}}"), strategy("", task), "g.yaml:4: spec.objects.condition: line 1, column 1: undeclared reference to 'objct'; did you mean object?; write for example object.status.readyReplicas == object.spec.replicas"},
		"fewer than none":  {gate("{prometheus: {address: 'https://x', query: up, condition: '== 1', toleratedFailures: -1}}"), strategy("", task), "g.yaml:4: spec.prometheus.toleratedFailures: must be 0 or more"},
		"two at once":      {gate("{soak: {duration: 1h}, prometheus: {address: 'https://x', query: up, condition: '== 1'}}"), strategy("", task), "g.yaml:4: spec: more than one check is set; write one RolloutGate for each, and list each as a task"},
		"http":             {gate("{http: {url: 'https://x/ready?a=b', condition: response.body.ready == true}}"), strategy("", task), ""},
		"no status":        {gate("{http: {url: 'https://x', status: 99}}"), strategy("", task), "g.yaml:4: spec.http.status: 99 is not a status code from 200 to 599"},
		"no expression":    {gate("{http: {url: 'https://x', condition: body.ready}}"), strategy("", task), "g.yaml:4: spec.http.condition: line 1, column 1: undeclared reference to 'body'; write for example response.body.ready == true"},
		"a Job":            {gate(job(checks+", clusters: 1, timeout: 5m, toleratedFailures: 1", "metadata: {labels: {team: web}}, ", "backoffLimit: 0, ", pod)), strategy("", task), ""},
		"no namespace":     {gate(job("clusters: 1", "", "", pod)), strategy("", task), "g.yaml:4: spec.job.namespace: required, and missing; add it"},
		"no template":      {gate("{job: {namespace: checks}}"), strategy("", task), "g.yaml:4: spec.job.template: required, and missing; add it"},
		"a text":           {gate("{job: {namespace: checks, template: smoke}}"), strategy("", task), "g.yaml:4: spec.job.template: must be a mapping with metadata and spec, as in a CronJob"},
		"not a namespace":  {gate(job("namespace: Checks", "", "", pod)), strategy("", task), `g.yaml:4: spec.job.namespace: "Checks" is not a valid namespace`},
		"reserved":         {gate(job("namespace: gitfleet-system", "", "", pod)), strategy("", task), "g.yaml:4: spec.job.namespace: no Job runs in gitfleet-system, which belongs to Kubernetes, KubeFleet or gitfleet; use a namespace for Jobs of gates"},
		"few clusters":     {gate(job(checks+", clusters: -1", "", "", pod)), strategy("", task), "g.yaml:4: spec.job.clusters: must be 1 or more; leave it out for all clusters of the stage"},
		"no time":          {gate(job(checks+", timeout: soon", "", "", pod)), strategy("", task), `g.yaml:4: spec.job.timeout: "soon" is not a duration from 1s to 366 days`},
		"seldom":           {gate(job(checks+", interval: 2h", "", "", pod)), strategy("", task), "g.yaml:4: spec.job.interval: is longer than 1h0m0s: a Job has to be looked at before it is deleted, a day after it has ended"},
		"a kind":           {gate(job(checks, "kind: Job, ", "", pod)), strategy("", task), "g.yaml:4: spec.job.template.kind: unknown field; known here: metadata, spec"},
		"a name":           {gate(job(checks, "metadata: {name: smoke}, ", "", pod)), strategy("", task), "g.yaml:4: spec.job.template.metadata.name: is set by gitfleet; remove it, a template has labels and annotations"},
		"a label of ours":  {gate(job(checks, "metadata: {labels: {gitfleet.dev/managed-by: prod}}, ", "", pod)), strategy("", task), "g.yaml:4: spec.job.template.metadata.labels[gitfleet.dev/managed-by]: is set by gitfleet; remove it"},
		"metadata":         {gate(job(checks, "metadata: smoke, ", "", pod)), strategy("", task), "g.yaml:4: spec.job.template.metadata: must be a mapping with labels and annotations"},
		"a list of labels": {gate(job(checks, "metadata: {labels: [team]}, ", "", pod)), strategy("", task), "g.yaml:4: spec.job.template.metadata.labels: must be a mapping of texts"},
		"a number":         {gate(job(checks, "metadata: {annotations: {team: 1}}, ", "", pod)), strategy("", task), "g.yaml:4: spec.job.template.metadata.annotations.team: must be a text; put it in quotation marks"},
		"null":             {gate(job(checks, "metadata: {labels: null}, ", "", pod)), strategy("", task), ""},
		"a deadline":       {gate(job(checks, "", "activeDeadlineSeconds: 60, ", pod)), strategy("", task), "g.yaml:4: spec.job.template.spec.activeDeadlineSeconds: follows from spec.job.timeout; write it there"},
		"it goes at once":  {gate(job(checks, "", "ttlSecondsAfterFinished: 0, ", pod)), strategy("", task), "g.yaml:4: spec.job.template.spec.ttlSecondsAfterFinished: is set by gitfleet, which has to see how the Job ends; remove it"},
		"never starts":     {gate(job(checks, "", "suspend: true, ", pod)), strategy("", task), "g.yaml:4: spec.job.template.spec.suspend: keeps the Job from running; remove it"},
		"no restartPolicy": {gate(job(checks, "", "", "containers: [{name: smoke, image: example.com/smoke}]")), strategy("", task), "g.yaml:4: spec.job.template.spec.template.spec.restartPolicy: must be Never or OnFailure in a Job; write for example Never"},
		"no container":     {gate(job(checks, "", "", "restartPolicy: Never")), strategy("", task), "g.yaml:4: spec.job.template.spec.template.spec.containers: required, and missing; add a container that does the check"},
		"a wrong field":    {gate(job(checks, "", "backofLimit: 0, ", pod)), strategy("", task), "g.yaml:4: spec.job.template.spec.backofLimit: unknown field; did you mean backoffLimit? (checked against Kubernetes"},
		"and a soak":       {gate("{soak: {duration: 1h}, " + job(checks, "", "", pod)[1:]), strategy("", task), "g.yaml:4: spec: more than one check is set"},
		"unknown gate":     {gate("{soke: {duration: 1h}}"), strategy("", task), "g.yaml:4: spec.soke: unknown field; known here: soak, prometheus, http"},
		"no name":          {gate(soak), strategy("", "{type: Gate}"), "s.yaml:10: spec.stages[0].afterStageTasks[0].gateName: must not be empty"},
		"twice":            {gate(soak), strategy("", task+"\n    - "+task), "s.yaml:11: spec.stages[0].afterStageTasks[1]: another task waits for the gate soak; remove one"},
		"before":           {gate(soak), strategy(task, "{type: Approval}"), "s.yaml:8: spec.stages[0].beforeStageTasks[0].type: a gate passes after a stage; make it a task after the previous stage"},
		"an approval":      {gate(soak), strategy("", "{type: Approval, gateName: soak}"), "s.yaml:10: spec.stages[0].afterStageTasks[0].gateName: is for tasks of type Gate; remove it, or make it a task of that type"},
		"a gate with wait": {gate(soak), strategy("", "{type: Gate, gateName: soak, waitTime: 1h}"), "s.yaml:10: spec.stages[0].afterStageTasks[0].waitTime: is for tasks of type TimedWait; remove it"},
	} {
		files := map[string]string{"s.yaml": test.strategy}
		if test.gate != "" {
			files["g.yaml"] = test.gate
		}
		got := problemsOf(t, files)
		if test.want == "" && len(got) == 0 {
			continue
		}
		if test.want == "" || !slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(p, test.want) }) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A gate may ask only the servers that the configuration allows, if that is known.
func TestGateServers(t *testing.T) {
	gate := "apiVersion: gitfleet.dev/v1alpha1\nkind: RolloutGate\nmetadata: {name: errors}\nspec:\n  prometheus:\n    query: up\n    condition: == 1\n    address: https://prometheus.example.com/eu\n"
	strategy := "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterStagedUpdateStrategy\nmetadata: {name: careful}\nspec:\n  stages:\n  - {name: canary, labelSelector: {}, afterStageTasks: [{type: Gate, gateName: errors}]}\n"
	const fault = "g.yaml:8: spec.prometheus.address: the configuration of gitfleet does not allow https://prometheus.example.com/eu, so the gate cannot pass; add it to gates.servers there, or correct it"
	for name, test := range map[string]struct {
		servers *GateServers
		want    string
	}{
		"not known":        {nil, ""},
		"allowed":          {&GateServers{[]string{"https://other", "https://prometheus.example.com/eu"}, true}, ""},
		"all of it":        {&GateServers{[]string{"https://PROMETHEUS.example.com:443"}, true}, ""},
		"none":             {&GateServers{nil, true}, fault},
		"in the daemon":    {&GateServers{nil, false}, fault + " (warning)"},
		"another path":     {&GateServers{[]string{"https://prometheus.example.com/e"}, true}, fault},
		"another port":     {&GateServers{[]string{"https://prometheus.example.com:8443"}, true}, fault},
		"without security": {&GateServers{[]string{"http://prometheus.example.com"}, true}, fault},
		"a longer host":    {&GateServers{[]string{"https://prometheus.example"}, true}, fault},
	} {
		got := problemsWith(t, map[string]string{"g.yaml": gate, "s.yaml": strategy}, Options{GateServers: test.servers})
		if (test.want == "") == (len(got) > 0) || test.want != "" && !slices.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// What a file has of a run is its placement and whether it may begin, whatever else the file or the manifest says.
func TestRunsInFile(t *testing.T) {
	const one = "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: StagedUpdateRun\nmetadata: {name: web-1, namespace: shop}\nspec: {placementName: web, stagedRolloutStrategyName: slow, state: Run}\n"
	for name, test := range map[string]struct{ content, appeared, started string }{
		"it is there":                 {one, "shop/web\n", "shop/web true\n"},
		"beside others":               {named(placementHead, "web") + "---\n" + one, "shop/web\n", "shop/web true\n"},
		"in a list":                   {"apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(one), "\n", "\n  ") + "\n", "shop/web\n", "shop/web true\n"},
		"in two namespaces":           {one + "---\n" + strings.Replace(one, "shop", "bar", 1), "shop/web\nbar/web\n", "shop/web true\nbar/web true\n"},
		"it is stopped":               {strings.Replace(one, "state: Run", "state: Stop", 1), "shop/web\n", "shop/web true\n"},
		"it may not begin":            {strings.Replace(one, "state: Run", "state: Initialize", 1), "shop/web\n", "shop/web false\n"},
		"it may not begin by default": {strings.Replace(one, ", state: Run", "", 1), "shop/web\n", "shop/web false\n"},
		"of another placement":        {strings.Replace(one, "Name: web", "Name: api", 1), "shop/api\n", "shop/api true\n"},
		"another name":                {strings.Replace(one, "web-1", "web-2", 1), "", ""},
		"another kind":                {strings.Replace(one, "kind: ", "kind: Cluster", 1), "", ""},
		"another group":               {strings.Replace(one, "placement.", "example.", 1), "", ""},
		"it is not YAML":              {"{", "", ""},
		"nothing is":                  {"", "", ""},
	} {
		got := RunsInFile("all.yaml", []byte(test.content))
		if appeared, started := got["StagedUpdateRun web-1"], got["StagedUpdateRun web-1"+Started]; appeared != test.appeared || started != test.started {
			t.Errorf("%s: %q and %q, want %q and %q", name, appeared, started, test.appeared, test.started)
		}
	}
}
