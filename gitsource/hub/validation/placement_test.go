package validation

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// decode decodes YAML into one of gitfleet's types.
func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	v := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// checkProblems compares the problems that check reports with the beginnings of those wanted.
func checkProblems(t *testing.T, check func(*document.Report), want []string) {
	t.Helper()
	r := &document.Report{}
	check(r)
	var got []string
	for _, p := range r.Problems {
		got = append(got, p.Marked())
	}
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same = strings.HasPrefix(got[i], want[i])
	}
	if !same {
		t.Errorf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// numbered returns n entries of a YAML list: a format with the numbers from 0.
func numbered(format string, n int) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(entries, ", ")
}

const (
	selectsNamespace = "resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}]\n"
	notDNS           = "a lowercase RFC 1123 subdomain must consist of"
	notQualified     = "name part must consist of alphanumeric characters"
)

// The fields of a policy depend on its placement type, and each has rules of its own.
func TestCheckPolicy(t *testing.T) {
	const (
		onlyFixed   = "affinity, numberOfClusters, topologySpreadConstraints, and tolerations cannot be set when placementType is PickFixed; remove it, or change placementType to "
		onlyPickAll = "clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll; remove it, or change placementType to "
		required    = "spec.policy.affinity.clusterAffinity.requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms"
		preferred   = "spec.policy.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution"
	)
	affinity := func(text string) string {
		return "{placementType: PickN, numberOfClusters: 1, affinity: {clusterAffinity: " + text + "}}"
	}
	requires := func(terms string) string {
		return affinity("{requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: " + terms + "}}")
	}
	prefers := func(list string) string {
		return affinity("{preferredDuringSchedulingIgnoredDuringExecution: " + list + "}")
	}
	tolerates := func(list string) string { return "{tolerations: " + list + "}" }
	for name, test := range map[string]struct {
		policy string
		want   []string
	}{
		"PickAll":                        {"{affinity: {}, tolerations: [{key: a}]}", nil},
		"PickN":                          {"{placementType: PickN, numberOfClusters: 0, affinity: {}, topologySpreadConstraints: [{topologyKey: region}], tolerations: [{key: a}]}", nil},
		"PickFixed":                      {"{placementType: PickFixed, clusterNames: [east, west]}", nil},
		"PickFixed without names":        {"{placementType: PickFixed}", nil},
		"PickAll with names":             {"{clusterNames: [east]}", []string{"spec.policy.clusterNames: " + onlyPickAll + "PickFixed"}},
		"PickAll with a spread":          {"{topologySpreadConstraints: [{topologyKey: region}]}", []string{"spec.policy.topologySpreadConstraints: " + onlyPickAll + "PickN"}},
		"PickAll with a number":          {"{numberOfClusters: 2}", []string{"spec.policy.numberOfClusters: " + onlyPickAll + "PickN"}},
		"PickN without a number":         {"{placementType: PickN}", []string{"spec.policy.numberOfClusters: clusterNames cannot be set and numberOfClusters must be set when placementType is PickN; write how many"}},
		"PickN with names":               {"{placementType: PickN, numberOfClusters: 1, clusterNames: [east]}", []string{"spec.policy.clusterNames: clusterNames cannot be set and numberOfClusters must be set when placementType is PickN; remove it, or change placementType to PickFixed"}},
		"PickN of a negative number":     {"{placementType: PickN, numberOfClusters: -1}", []string{"spec.policy.numberOfClusters: number of clusters cannot be -1 for policy type PickN"}},
		"PickFixed with a number":        {"{placementType: PickFixed, numberOfClusters: 1}", []string{"spec.policy.numberOfClusters: " + onlyFixed + "PickN"}},
		"PickFixed with affinity":        {"{placementType: PickFixed, affinity: {}}", []string{"spec.policy.affinity: " + onlyFixed + "PickAll or PickN"}},
		"PickFixed with tolerations":     {"{placementType: PickFixed, tolerations: [{key: a}]}", []string{"spec.policy.tolerations: " + onlyFixed + "PickAll or PickN"}},
		"a malformed cluster name":       {"{placementType: PickFixed, clusterNames: [East]}", []string{"spec.policy.clusterNames[0]: PickFixed cluster name East is not a valid member name: " + notDNS}},
		"a repeated cluster name":        {"{placementType: PickFixed, clusterNames: [east, east]}", []string{"spec.policy.clusterNames[1]: cluster names must be unique for policy type PickFixed; remove the second east"}},
		"the longest cluster name":       {"{placementType: PickFixed, clusterNames: [" + strings.Repeat("a", 63) + "]}", nil},
		"a cluster name that is longer":  {"{placementType: PickFixed, clusterNames: [" + strings.Repeat("a", 64) + "]}", []string{"spec.policy.clusterNames[0]: PickFixed cluster name " + strings.Repeat("a", 64) + " cannot have length exceeding 63"}},
		"too many cluster names":         {"{placementType: PickFixed, clusterNames: [" + numbered("c%d", 101) + "]}", []string{"spec.policy.clusterNames: must have at most 100 entries, and has 101"}},
		"an affinity without a name":     {"{affinity: {placementAffinity: [{name: ''}], placementAntiAffinity: [{name: a}, {name: ''}]}}", []string{"spec.policy.affinity.placementAffinity[0].name: must not be empty", "spec.policy.affinity.placementAntiAffinity[1].name: must not be empty"}},
		"required labels":                {requires("[{labelSelector: {matchLabels: {env: prod}}}]"), nil},
		"malformed required labels":      {requires("[{labelSelector: {matchLabels: {a b: c}}}]"), []string{required + "[0].labelSelector: the labelSelector in cluster selector is invalid: "}},
		"a required order":               {requires("[{propertySorter: {name: a, sortOrder: Ascending}}]"), []string{required + "[0].propertySorter: PropertySorter is not allowed for RequiredDuringSchedulingIgnoredDuringExecution affinity; write a propertySelector"}},
		"a required property":            {requires("[{}, {propertySelector: {matchExpressions: [{name: a, operator: Gt, values: ['1', '2']}]}}]"), []string{required + "[1].propertySelector.matchExpressions[0].values: invalid requirement on property a: operator Gt requires exactly one value, got 2"}},
		"too many required terms":        {requires("[" + numbered("{labelSelector: {matchLabels: {a: b%d}}}", 11) + "]"), []string{required + ": must have at most 10 entries, and has 11"}},
		"weights at the limits":          {prefers("[{weight: 100, preference: {}}, {weight: -100, preference: {}}]"), nil},
		"a weight that is too large":     {prefers("[{weight: 101, preference: {}}]"), []string{preferred + "[0].weight: must be between -100 and 100, not 101"}},
		"a weight that is too small":     {prefers("[{weight: -101, preference: {}}]"), []string{preferred + "[0].weight: must be between -100 and 100, not -101"}},
		"malformed preferred labels":     {prefers("[{weight: 1, preference: {labelSelector: {matchLabels: {a b: c}}}}]"), []string{preferred + "[0].preference.labelSelector: the labelSelector in preferred cluster selector is invalid: "}},
		"a preferred property value":     {prefers("[{weight: 1, preference: {propertySelector: {matchExpressions: []}}}]"), []string{preferred + "[0].preference.propertySelector: PropertySelector is not allowed for PreferredDuringSchedulingIgnoredDuringExecution affinity; write a propertySorter"}},
		"a preferred order":              {prefers("[{weight: 1, preference: {propertySorter: {name: a, sortOrder: Ascending}}}]"), nil},
		"an order of a malformed name":   {prefers("[{weight: 1, preference: {propertySorter: {name: -a, sortOrder: Ascending}}}]"), []string{preferred + "[0].preference.propertySorter.name: property name -a is not valid: " + notQualified}},
		"a preference of PickAll":        {"{affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}}}", []string{preferred + ": PreferredDuringSchedulingIgnoredDuringExecution will be ignored for placement policy type PickAll, which takes every cluster; remove it"}},
		"a spread without a key":         {"{placementType: PickN, numberOfClusters: 1, topologySpreadConstraints: [{topologyKey: ''}]}", []string{"spec.policy.topologySpreadConstraints[0].topologyKey: must not be empty"}},
		"a spread without a skew":        {"{placementType: PickN, numberOfClusters: 1, topologySpreadConstraints: [{topologyKey: a, maxSkew: 0}]}", []string{"spec.policy.topologySpreadConstraints[0].maxSkew: must be at least 1, not 0"}},
		"a toleration of everything":     {tolerates("[{operator: Exists}]"), nil},
		"a toleration of every value":    {tolerates("[{key: a, operator: Exists, value: b}]"), []string{"spec.policy.tolerations[0].value: value must be empty when operator is Exists"}},
		"a toleration without a key":     {tolerates("[{value: a}]"), []string{"spec.policy.tolerations[0].key: operator must be Exists when key is empty"}},
		"a malformed toleration":         {tolerates("[{key: a b, value: c d}]"), []string{`spec.policy.tolerations[0].value: invalid toleration value "c d": `, `spec.policy.tolerations[0].key: invalid toleration key "a b": `}},
		"tolerations of several effects": {tolerates("[{key: a}, {key: a, effect: NoSchedule}]"), nil},
		"a toleration twice":             {tolerates("[{key: a}, {key: a, operator: Equal}]"), []string{"spec.policy.tolerations[1]: this toleration already exists, tolerations must be unique; remove it"}},
		"too many tolerations":           {tolerates("[" + numbered("{key: a%d}", 101) + "]"), []string{"spec.policy.tolerations: must have at most 100 entries, and has 101"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := decode[api.PlacementSpec](t, selectsNamespace+"policy: "+test.policy)
			DefaultPlacement(spec)
			checkProblems(t, func(r *document.Report) { CheckPlacement(r, api.ID{Name: "web"}, nil, spec) }, test.want)
		})
	}
}

// The selectors of a placement name kinds that it can place, and at most one of them combines a
// Namespace with single objects in it.
func TestCheckTerms(t *testing.T) {
	const (
		namespace = "{group: '', version: v1, kind: Namespace, name: web}"
		partly    = "{group: '', version: v1, kind: Namespace, name: web, selectionScope: NamespaceWithResourceSelectors}"
		at        = "spec.resourceSelectors"
	)
	for name, test := range map[string]struct {
		namespace, terms, more string
		want                   []string
	}{
		"a Namespace":                         {"", "[" + namespace + "]", "", nil},
		"a cluster-scoped kind":               {"", "[{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole}]", "", nil},
		"a kind that is not built in":         {"", "[{group: example.com, version: v1, kind: Gadget}]", "", nil},
		"no kind and no version":              {"", "[{group: '', version: '', kind: ''}]", "", []string{at + "[0].kind: must not be empty", at + "[0].version: must not be empty"}},
		"a name and labels":                   {"", "[{group: '', version: v1, kind: Namespace, name: web, labelSelector: {}}]", "", []string{at + "[0]: name and labelSelector are mutually exclusive in a resource selector; remove one of them"}},
		"none":                                {"", "[]", "", []string{at + ": must have at least 1 entry"}},
		"malformed labels":                    {"", "[{group: '', version: v1, kind: Namespace, labelSelector: {matchExpressions: [{key: a, operator: In}]}}]", "", []string{at + "[0].labelSelector: the labelSelector in resource selector is invalid: "}},
		"a hundred":                           {"", "[" + numbered("{group: '', version: v1, kind: Namespace, name: n%d}", 100) + "]", "", nil},
		"more than a hundred":                 {"", "[" + numbered("{group: '', version: v1, kind: Namespace, name: n%d}", 101) + "]", "", []string{at + ": must have at most 100 entries, and has 101"}},
		"a namespaced kind alone":             {"", "[" + namespace + ", {group: apps, version: v1, kind: Deployment}]", "", []string{at + "[1].kind: Deployment is not a cluster scoped resource; select its Namespace by name with selectionScope: NamespaceWithResourceSelectors beside it, or use a ResourcePlacement"}},
		"a namespaced kind of a Namespace":    {"", "[" + partly + ", {group: apps, version: v1, kind: Deployment}]", "", nil},
		"two partly selected Namespaces":      {"", "[" + partly + ", " + strings.Replace(partly, "web", "db", 1) + "]", "", []string{at + "[1]: only one namespace selector with NamespaceWithResourceSelectors mode is allowed"}},
		"a partly and a wholly selected one":  {"", "[" + namespace + ", " + partly + "]", "", []string{at + "[0]: when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors)"}},
		"the other way round":                 {"", "[" + partly + ", " + namespace + "]", "", []string{at + "[1]: when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors)"}},
		"partly selected by label":            {"", "[{group: '', version: v1, kind: Namespace, labelSelector: {}, selectionScope: NamespaceWithResourceSelectors}]", "", []string{at + "[0]: namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label)"}},
		"partly selected without a name":      {"", "[{group: '', version: v1, kind: Namespace, selectionScope: NamespaceWithResourceSelectors}]", "", []string{at + "[0]: namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label)"}},
		"the scope of another kind":           {"", "[{group: example.com, version: v1, kind: Namespace, selectionScope: NamespaceWithResourceSelectors}, {group: example.com, version: v1, kind: Namespace, selectionScope: NamespaceWithResourceSelectors}]", "", nil},
		"status in one Namespace":             {"", "[" + namespace + "]", "statusReportingScope: NamespaceAccessible", nil},
		"status in no Namespace":              {"", "[{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole}]", "statusReportingScope: NamespaceAccessible", []string{"spec.statusReportingScope: when statusReportingScope is NamespaceAccessible, exactly one"}},
		"status in two Namespaces":            {"", "[" + namespace + ", " + strings.Replace(namespace, "web", "db", 1) + "]", "statusReportingScope: NamespaceAccessible", []string{"spec.statusReportingScope: when statusReportingScope is NamespaceAccessible, exactly one"}},
		"namespaced: an object":               {"web", "[{group: apps, version: v1, kind: Deployment}]", "", nil},
		"namespaced: the status scope":        {"web", "[{group: apps, version: v1, kind: Deployment}]", "statusReportingScope: NamespaceAccessible", nil},
		"namespaced: a cluster-scoped object": {"web", "[" + namespace + "]", "", []string{at + "[0].kind: Namespace is a cluster scoped resource, which a ResourcePlacement cannot select; use a ClusterResourcePlacement"}},
		"a history of 0":                      {"", "[" + namespace + "]", "revisionHistoryLimit: 0", []string{"spec.revisionHistoryLimit: must be between 1 and 1000, not 0"}},
		"a history of 1000":                   {"", "[" + namespace + "]", "revisionHistoryLimit: 1000", nil},
	} {
		t.Run(name, func(t *testing.T) {
			spec := decode[api.PlacementSpec](t, "resourceSelectors: "+test.terms+"\n"+test.more)
			DefaultPlacement(spec)
			checkProblems(t, func(r *document.Report) {
				CheckPlacement(r, api.ID{Namespace: test.namespace, Name: "web"}, nil, spec)
			}, test.want)
		})
	}
}

// A rollout that could never end or that KubeFleet would refuse is refused.
func TestCheckStrategy(t *testing.T) {
	const at = "spec.strategy."
	for name, test := range map[string]struct {
		strategy string
		want     []string
	}{
		"defaults":                       {"{}", nil},
		"percentages":                    {"{rollingUpdate: {maxUnavailable: 100%, maxSurge: 0%}}", nil},
		"more than all clusters":         {"{rollingUpdate: {maxUnavailable: 101%}}", []string{at + "rollingUpdate.maxUnavailable: maxUnavailable `101%` is invalid: write a whole number without quotes, or a percentage from 0% to 100%"}},
		"a number in quotes":             {"{rollingUpdate: {maxSurge: '5'}}", []string{at + "rollingUpdate.maxSurge: maxSurge `5` is invalid: "}},
		"a negative number":              {"{rollingUpdate: {maxSurge: -1}}", []string{at + "rollingUpdate.maxSurge: maxSurge must be greater than or equal to 0, got `-1`"}},
		"a negative period":              {"{rollingUpdate: {unavailablePeriodSeconds: -1}}", []string{at + "rollingUpdate.unavailablePeriodSeconds: unavailablePeriodSeconds must be greater than or equal to 0, got -1"}},
		"no unavailable cluster":         {"{rollingUpdate: {maxUnavailable: 0}}", []string{at + "rollingUpdate.maxUnavailable: 0 lets no update reach a cluster that is available: maxSurge lets clusters be added, and updates none; write 1 or more (warning)"}},
		"no cluster at all":              {"{rollingUpdate: {maxUnavailable: 00%, maxSurge: 0%}}", []string{at + "rollingUpdate: maxUnavailable and maxSurge are both 0, so nothing could ever be rolled out; raise one of them"}},
		"no surge":                       {"{rollingUpdate: {maxSurge: 0}}", nil},
		"zero beside an invalid value":   {"{rollingUpdate: {maxUnavailable: 0, maxSurge: many}}", []string{at + "rollingUpdate.maxSurge: maxSurge `many` is invalid: "}},
		"External":                       {"{type: External}", nil},
		"External with a rolling update": {"{type: External, rollingUpdate: {maxUnavailable: 1}}", []string{at + "rollingUpdate: rollingUpdateConifg is not valid for ExternalRollout strategy type; remove it"}},
		"server-side apply":              {"{applyStrategy: {type: ServerSideApply, serverSideApplyConfig: {force: true}}}", nil},
		"client-side apply with force":   {"{applyStrategy: {serverSideApplyConfig: {force: true}}}", []string{at + "applyStrategy.serverSideApplyConfig: serverSideApplyConfig is only valid for ServerSideApply strategy type; remove it, or write type: ServerSideApply"}},
		"no report":                      {"{reportBackStrategy: {type: Disabled}}", nil},
		"a report to the Work":           {"{reportBackStrategy: {type: Mirror, destination: WorkAPI}}", nil},
		"a report to nowhere":            {"{reportBackStrategy: {type: Mirror}}", []string{at + "reportBackStrategy.destination: when reportBackStrategy.type is 'Mirror', a destination must be specified"}},
		"a report to Git":                {"{reportBackStrategy: {type: Mirror, destination: OriginalResource}}", []string{at + "reportBackStrategy.destination: OriginalResource has no effect: a Git repository has no object to write the status to; use WorkAPI, or remove reportBackStrategy (warning)"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := decode[api.PlacementSpec](t, selectsNamespace+"strategy: "+test.strategy)
			DefaultPlacement(spec)
			checkProblems(t, func(r *document.Report) { CheckPlacement(r, api.ID{Name: "web"}, nil, spec) }, test.want)
		})
	}
}

func TestCheckPlacementName(t *testing.T) {
	for name, want := range map[string][]string{
		"web.example-1":         nil,
		strings.Repeat("a", 63): nil,
		strings.Repeat("a", 64): {"metadata.name: the name field cannot have length exceeding 63; it has 64"},
		"Web":                   {`metadata.name: "Web" is not a valid name: ` + notDNS},
	} {
		spec := decode[api.PlacementSpec](t, selectsNamespace)
		DefaultPlacement(spec)
		checkProblems(t, func(r *document.Report) { CheckPlacement(r, api.ID{Name: name}, nil, spec) }, want)
	}
}

// If the scope of a kind is not known, it can be selected: a CustomResourceDefinition of the
// commit may declare it.
func TestSelectionFault(t *testing.T) {
	partly := []api.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "web", SelectionScope: api.NamespaceWithResourceSelectors}}
	for _, test := range []struct {
		name                           string
		terms                          []api.ResourceSelectorTerm
		namespaced, known, inNamespace bool
		refused                        bool
	}{
		{"unknown scope", nil, true, false, false, false},
		{"unknown scope, in a namespace", nil, false, false, true, false},
		{"cluster-scoped", nil, false, true, false, false},
		{"cluster-scoped, in a namespace", nil, false, true, true, true},
		{"namespaced", nil, true, true, false, true},
		{"namespaced, beside its Namespace", partly, true, true, false, false},
		{"namespaced, in a namespace", nil, true, true, true, false},
	} {
		if got := SelectionFault(test.terms, "Gadget", test.namespaced, test.known, test.inNamespace); (got != "") != test.refused {
			t.Errorf("%s: %q, want it to be refused: %t", test.name, got, test.refused)
		}
	}
}

// Each placement type has a message for the fields that it does not allow.
func TestEveryPlacementTypeHasAMessage(t *testing.T) {
	for _, placementType := range []api.PlacementType{api.PickAll, api.PickN, api.PickFixed} {
		if policyMessages[placementType] == "" {
			t.Errorf("%s has no message", placementType)
		}
	}
}
