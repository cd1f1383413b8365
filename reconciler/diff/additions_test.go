package diff

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
)

const (
	settings = "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {a: one}\n"
	password = "\napiVersion: v1\nkind: Secret\nmetadata: {name: password, namespace: shop}\nstringData: {a: one}\n"
	binding  = "\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b, namespace: shop}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}\n"
	role     = "\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r, labels: {tier: back}}\n"
	portal   = "\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec:\n  ports: [{name: http, port: 80}]\n"
	hooks    = "\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: hooks}\nwebhooks: [{name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://a.example.com'}}]\n"
	account  = "\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: builder, namespace: shop}\n"
)

// edit returns a function that sets the field at a path, in which numbers are indexes and "+" is a new
// item.
func edit(path string, value string) func(*testing.T, map[string]any) {
	return func(t *testing.T, o map[string]any) {
		t.Helper()
		var v any
		if err := yaml.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		setAt(o, strings.Split(path, " "), normalized(v))
	}
}

func setAt(v any, path []string, value any) any {
	key, last := path[0], len(path) == 1
	switch in := v.(type) {
	case []any:
		if key == "+" {
			return append(in, value)
		}
		var i int
		fmt.Sscan(key, &i)
		if last {
			in[i] = value
		} else {
			in[i] = setAt(in[i], path[1:], value)
		}
		return in
	case nil:
		if key == "+" {
			return []any{value}
		}
		v = map[string]any{}
	}
	m := v.(map[string]any)
	if last {
		m[key] = value
	} else {
		m[key] = setAt(m[key], path[1:], value)
	}
	return m
}

const pods = "spec template spec "

// An addition is an item, a list, a key of data or a label that somebody has written by hand.
func TestAdditions(t *testing.T) {
	type write struct {
		manager, subresource string
		change               func(*testing.T, map[string]any)
	}
	byHand := func(path, value string) write { return write{"kubectl-edit", "", edit(path, value)} }
	for name, test := range map[string]struct {
		manifest string
		write    write
		want     string // paths with values and actors; empty for none
	}{
		"a variable":             {web, byHand(pods+"containers 0 env +", "{name: B, value: two}"), "/spec/template/spec/containers/0/env/-=map[name:B value:two] by kubectl-edit"},
		"a container":            {web, byHand(pods+"containers +", "{name: side, image: side:1}"), "/spec/template/spec/containers/-=map[image:side:1 name:side] by kubectl-edit"},
		"an init container":      {web, byHand(pods+"initContainers +", "{name: init, image: i:1}"), "/spec/template/spec/initContainers/-=map[image:i:1 name:init] by kubectl-edit"},
		"a volume":               {web, byHand(pods+"volumes +", "{name: v, emptyDir: {}}"), "/spec/template/spec/volumes/-=map[emptyDir:map[] name:v] by kubectl-edit"},
		"a mount":                {web, byHand(pods+"containers 0 volumeMounts +", "{name: v, mountPath: /v}"), "/spec/template/spec/containers/0/volumeMounts/-=map[mountPath:/v name:v] by kubectl-edit"},
		"a port of a container":  {web, byHand(pods+"containers 0 ports +", "{containerPort: 81, protocol: TCP}"), "/spec/template/spec/containers/0/ports/-=map[containerPort:81 protocol:TCP] by kubectl-edit"},
		"a pull secret":          {web, byHand(pods+"imagePullSecrets +", "{name: mine}"), "/spec/template/spec/imagePullSecrets/-=map[name:mine] by kubectl-edit"},
		"all variables of":       {web, byHand(pods+"containers 0 envFrom +", "{secretRef: {name: s}}"), "/spec/template/spec/containers/0/envFrom=[map[secretRef:map[name:s]]] by kubectl-edit"},
		"arguments":              {web, byHand(pods+"containers 0 args", "[-v]"), "/spec/template/spec/containers/0/args=[-v] by kubectl-edit"},
		"a label":                {web, byHand("metadata labels team", "blue"), "/metadata/labels/team=blue by kubectl-edit"},
		"a label of pods":        {web, byHand("spec template metadata labels team", "blue"), "/spec/template/metadata/labels/team=blue by kubectl-edit"},
		"a label of Kubernetes":  {settings, byHand("metadata labels pod-security.kubernetes.io~enforce", "privileged"), "/metadata/labels/pod-security.kubernetes.io~0enforce=privileged by kubectl-edit"},
		"a key of a ConfigMap":   {settings, byHand("data b", "two"), "/data/b=two by kubectl-edit"},
		"binary data":            {settings, byHand("binaryData b", "dHdv"), "/binaryData/b=dHdv by kubectl-edit"},
		"a key of a placeholder": {"\napiVersion: v1\nkind: Secret\nmetadata: {name: certs, namespace: shop}\n", write{"manager", "", edit("data tls.crt", "dHdv")}, ""},
		"rules of a webhook":     {hooks, write{"webhook", "", edit("webhooks 0 rules", "[{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]")}, ""},
		"a key of a Secret":      {password, byHand("data b", "dHdv"), "/data/b=" + Mask + " by kubectl-edit"},
		"subjects":               {binding, byHand("subjects +", "{kind: User, name: eve, apiGroup: rbac.authorization.k8s.io}"), "/subjects=[map[apiGroup:rbac.authorization.k8s.io kind:User name:eve]] by kubectl-edit"},
		"rules":                  {role, byHand("rules +", "{verbs: ['*'], apiGroups: ['*'], resources: ['*']}"), "/rules=[map[apiGroups:[*] resources:[*] verbs:[*]]] by kubectl-edit"},
		"a port of a Service":    {portal, byHand("spec ports +", "{name: more, port: 81, protocol: TCP}"), "/spec/ports/-=map[name:more port:81 protocol:TCP] by kubectl-edit"},
		"external addresses":     {portal, byHand("spec externalIPs", "[203.0.113.1]"), "/spec/externalIPs=[203.0.113.1] by kubectl-edit"},
		"an applied one":         {settings, write{manager: "apply:alice", change: edit("data b", "two")}, "/data/b=two by alice"},
		"by any other program":   {settings, write{"python-requests", "", edit("data b", "two")}, "/data/b=two by python-requests"},
		"a field":                {web, byHand(pods+"priorityClassName", "high"), ""},
		"an annotation":          {web, byHand("metadata annotations note", "x"), ""},
		"a rollout restart":      {web, byHand("spec template metadata annotations kubectl.kubernetes.io~restartedAt", "now"), ""},
		"a changed value":        {settings, byHand("data a", "two"), ""},
		"a finalizer":            {settings, byHand("metadata finalizers", "[example.com/wait]"), ""},
		"a status":               {web, write{"kubectl-edit", "status", edit("status conditions +", "{type: Ready, status: 'True'}")}, ""},
		"by a controller":        {web, write{"kube-controller-manager", "", edit("metadata labels team", "blue")}, ""},
		"by gitfleet":            {web, write{"gitfleet-handover", "", edit("metadata labels team", "blue")}, ""},
		"by an injector":         {web, write{"flagger", "", edit("metadata labels team", "blue")}, ""},
		"what an injector adds":  {web, write{"sidecar", "", edit(pods+"containers +", "{name: istio-proxy, image: p:1}")}, ""},
		"what Reloader adds":     {web, write{"manager", "", edit(pods+"containers 0 env +", "{name: STAKATER_WEB_SECRET, value: x}")}, ""},
		"a pull secret of it":    {account, write{"manager", "", edit("imagePullSecrets +", "{name: builder-dockercfg-x1}")}, ""},
		"an ignored key":         {ignoring(settings, "/data/b"), byHand("data b", "two"), ""},
		"an ignored list":        {ignoring(web, "/spec/template/spec/containers/0/env"), byHand(pods+"containers 0 env +", "{name: B, value: two}"), ""},
		"beside an ignored key":  {ignoring(settings, "/data/b"), byHand("data c", "two"), "/data/c=two by kubectl-edit"},
		"an aggregated role":     {role + "aggregationRule: {clusterRoleSelectors: []}\n", write{"clusterrole-aggregation-controller", "", edit("rules +", "{verbs: [get], apiGroups: [''], resources: [pods]}")}, ""},
		"a bundle of OpenShift":  {strings.Replace(settings, "metadata: {", "metadata: {annotations: {service.beta.openshift.io/inject-cabundle: 'true'}, ", 1), write{"manager", "", edit("data service-ca.crt", "x")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, test.manifest)
			if manager, applies := strings.CutPrefix(test.write.manager, "apply:"); applies {
				o := object(t, strings.Replace(test.manifest, "data: {a: one}", "data: {b: two}", 1))
				s.live = s.dryRunOf(manager, o)
			} else {
				s.update(test.write.manager, test.write.subresource, func(o map[string]any) { test.write.change(t, o) })
			}
			x := Extended{Manifest: object(t, test.manifest), Live: s.live, Entries: s.live.GetManagedFields(), Manager: api.FieldManager}
			if got := additionsText(Additions(x)); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
			if test.want != "" && !MayBeExtended(x.Entries, api.FieldManager, x.Live.GroupVersionKind().Group) {
				t.Errorf("managedFields do not show it: %v", x.Entries)
			}
		})
	}
}

func ignoring(manifest, pointers string) string {
	return strings.Replace(strings.Replace(manifest, "metadata: {", "metadata: {annotations: {gitfleet.dev/ignore-fields: "+pointers+"}, ", 1),
		"metadata:\n  name: web\n", "metadata:\n  annotations: {gitfleet.dev/ignore-fields: "+pointers+"}\n  name: web\n", 1)
}

func additionsText(list []api.Difference) string {
	var lines []string
	for _, d := range list {
		var by []string
		for _, a := range d.By {
			by = append(by, a.Manager)
		}
		lines = append(lines, d.Path+"="+d.ValueInMember+" by "+strings.Join(by, "+"))
	}
	return strings.Join(lines, "; ")
}

// Operators extend custom resources, so that only what kubectl has written to them is an addition.
func TestAdditionsToCustomResources(t *testing.T) {
	for manager, want := range map[string]int{"kubectl-label": 1, "operator": 0} {
		s := newServer(t, settings) // no scheme has the custom resource
		s.update(manager, "", func(o map[string]any) { edit("metadata labels team", "blue")(t, o) })
		s.live.SetAPIVersion("stable.example.com/v1")
		x := Extended{Manifest: object(t, settings), Live: s.live, Entries: s.live.GetManagedFields(), Manager: api.FieldManager}
		if got := Additions(x); len(got) != want {
			t.Errorf("by %s: %v", manager, got)
		}
	}
}

// What nobody has written, as an admission webhook adds it, is no addition, and neither is what was there
// before, unless it is known.
func TestWhatCountsAsAddition(t *testing.T) {
	s := newServer(t, web)
	edit(pods+"containers +", "{name: injected, image: i:1}")(t, s.live.Object)
	x := Extended{Manifest: object(t, web), Live: s.live, Entries: s.live.GetManagedFields(), Manager: api.FieldManager}
	if got := Additions(x); len(got) > 0 || MayBeExtended(x.Entries, x.Manager, "apps") {
		t.Errorf("injected: %v", got)
	}
	s.update("kubectl-edit", "", func(o map[string]any) { edit(pods+"containers 1 env +", "{name: B}")(t, o) })
	x.Live, x.Entries = s.live, s.live.GetManagedFields()
	if got := additionsText(Additions(x)); got != "/spec/template/spec/containers/1/env/0=map[name:B] by kubectl-edit" {
		t.Fatalf("by hand: %s", got)
	}
	known := Additions(x)[0].By
	if x.Since = time.Now().Add(time.Hour); len(Additions(x)) > 0 {
		t.Error("it was there before, and counts")
	}
	if x.Known = known; len(Additions(x)) != 1 {
		t.Error("it is known, and does not count")
	}
	x.Left = leftOf(addedBy(false, fieldsOf(&x.Entries[len(x.Entries)-1]), fieldsOf(entryOf(x.Entries, x.Manager))))
	if got := Additions(x); len(got) > 0 {
		t.Errorf("Git has removed it: %v", got)
	}
}

// Whatever is written by hand, additions are there and not in Git, none is within another, and removing
// them leaves what gitfleet applied; an object that only gitfleet writes has none.
func TestAdditionsAreBesideTheManifest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	for range 300 {
		s := newServer(t, web)
		for range 1 + random.IntN(4) {
			path, value := pick(pods+"containers 0 env +", pods+"containers +", pods+"volumes +"), fmt.Sprintf("{name: %s}", pick("a", "b", "c"))
			if random.IntN(3) == 0 {
				path, value = pick("metadata labels ", "spec template metadata labels ")+pick("x", "tier", "app"), pick("one", "two")
			}
			changed := s.live.DeepCopy()
			edit(path, value)(t, changed.Object)
			if hasDuplicates(changed) {
				continue
			}
			s.update(pick("kubectl-edit", "kubectl-set", "helm"), "", func(o map[string]any) { edit(path, value)(t, o) })
		}
		if random.IntN(2) == 0 {
			s.apply(api.FieldManager, web)
		}
		x := Extended{Manifest: object(t, web), Live: s.live, Entries: s.live.GetManagedFields(), Manager: api.FieldManager}
		list := Additions(x)
		for i, d := range list {
			if d.ValueInHub != "" || d.ValueInMember == "" || len(d.By) == 0 {
				t.Errorf("%+v", d)
			}
			if i > 0 && strings.HasPrefix(d.Path, list[i-1].Path+"/") {
				t.Errorf("%s is within %s", d.Path, list[i-1].Path)
			}
		}
		without := removedFrom(t, x)
		if rest := Additions(Extended{Manifest: x.Manifest, Live: without, Entries: x.Entries, Manager: x.Manager}); len(rest) > 0 {
			t.Errorf("after the removal there are %s", additionsText(rest))
		}
		if before, after := Compare(x.Manifest, x.Live, Options{Structural: true}), Compare(x.Manifest, without, Options{Structural: true}); !slices.Equal(before, after) {
			t.Errorf("the removal of additions changes what the manifest sets: %v, before it %v", after, before)
		}
		s.live = s.dryRun(api.FieldManager, web)
		if got := Compare(object(t, web), s.live, Options{Structural: true}); len(got) > 0 {
			t.Errorf("additions are differences: %v", got)
		}
	}
	s := newServer(t, web)
	if got := Additions(Extended{Manifest: object(t, web), Live: s.live, Entries: s.live.GetManagedFields(), Manager: api.FieldManager}); len(got) > 0 {
		t.Errorf("nobody has written: %v", got)
	}
}

// removedFrom returns a live object without its additions.
func removedFrom(t *testing.T, x Extended) *unstructured.Unstructured {
	t.Helper()
	raw, err := WithoutAdditions(x)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		t.Fatal(err)
	}
	live := x.Live.DeepCopy()
	live.SetResourceVersion("7") // which the patch sets
	text, err := live.MarshalJSON()
	if err == nil {
		text, err = patch.Apply(text)
	}
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return out
}

// hasDuplicates reports whether a list of a workload has two items of the same name.
func hasDuplicates(o *unstructured.Unstructured) bool {
	pod, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
	lists := []any{pod["containers"], pod["volumes"]}
	for _, c := range pod["containers"].([]any) {
		lists = append(lists, c.(map[string]any)["env"])
	}
	for _, list := range lists {
		items, _ := list.([]any)
		if _, ok := by("name").names(items); !ok {
			return true
		}
	}
	return false
}
