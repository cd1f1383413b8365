package validation

import (
	"encoding/json"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// asJSON returns the JSON of a value, whose fields are in the order of its type.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The defaults are those of KubeFleet's schema. Fields that are set stay, and setting the
// defaults again changes nothing.
func TestDefaultPlacement(t *testing.T) {
	const (
		terms = `{"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","name":"web","selectionScope":"NamespaceWithResources"}],`
		all   = terms + `"policy":{"placementType":"PickAll"},`
		roll  = `"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%","unavailablePeriodSeconds":60},`
		apply = `"applyStrategy":{"comparisonOption":"PartialComparison","whenToApply":"Always","type":"ClientSideApply","whenToTakeOver":"Always"},`
		del   = `"deleteStrategy":{"propagationPolicy":"Delete"}`
		rest  = `},"revisionHistoryLimit":10,"statusReportingScope":"ClusterScopeOnly"}`
	)
	for name, test := range map[string]struct{ spec, want string }{
		"nothing":         {"", all + roll + apply + del + rest},
		"an empty policy": {"policy: {}", all + roll + apply + del + rest},
		"a policy": {
			"policy: {placementType: PickN, numberOfClusters: 2, tolerations: [{key: a}], topologySpreadConstraints: [{topologyKey: r}]}",
			terms + `"policy":{"placementType":"PickN","numberOfClusters":2,` +
				`"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"r","whenUnsatisfiable":"DoNotSchedule"}],` +
				`"tolerations":[{"key":"a","operator":"Equal"}]},` + roll + apply + del + rest,
		},
		"a policy with everything": {
			"policy: {tolerations: [{operator: Exists}], topologySpreadConstraints: [{topologyKey: r, maxSkew: 0, whenUnsatisfiable: ScheduleAnyway}]}",
			terms + `"policy":{"placementType":"PickAll","topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"r","whenUnsatisfiable":"ScheduleAnyway"}],` +
				`"tolerations":[{"operator":"Exists"}]},` + roll + apply + del + rest,
		},
		"an external rollout": {
			"strategy: {type: External, applyStrategy: {type: ServerSideApply}}",
			all + `"strategy":{"type":"External","applyStrategy":{"comparisonOption":"PartialComparison","whenToApply":"Always","type":"ServerSideApply",` +
				`"serverSideApplyConfig":{"force":false},"whenToTakeOver":"Always"},` + del + rest,
		},
		"an external rollout with a rolling update": {
			"strategy: {type: External, rollingUpdate: {maxSurge: 1}}",
			all + `"strategy":{"type":"External","rollingUpdate":{"maxUnavailable":"25%","maxSurge":1,"unavailablePeriodSeconds":60},` + apply + del + rest,
		},
		"a rolling update of zeros": {
			"strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0, unavailablePeriodSeconds: 0}}",
			all + `"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0,"maxSurge":0,"unavailablePeriodSeconds":0},` + apply + del + rest,
		},
		"an empty report": {"strategy: {reportBackStrategy: {type: ''}}", all + roll + apply + del + `,"reportBackStrategy":{"type":"Disabled"}` + rest},
		"everything else": {
			"revisionHistoryLimit: 0\nstatusReportingScope: NamespaceAccessible\nstrategy: {applyStrategy: {comparisonOption: FullComparison, whenToApply: IfNotDrifted, type: ReportDiff, whenToTakeOver: Never}, deleteStrategy: {propagationPolicy: Abandon}, reportBackStrategy: {type: Mirror}}",
			all + roll + `"applyStrategy":{"comparisonOption":"FullComparison","whenToApply":"IfNotDrifted","type":"ReportDiff","whenToTakeOver":"Never"},` +
				`"deleteStrategy":{"propagationPolicy":"Abandon"},"reportBackStrategy":{"type":"Mirror"}},"revisionHistoryLimit":0,"statusReportingScope":"NamespaceAccessible"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := decode[api.PlacementSpec](t, selectsNamespace+test.spec)
			DefaultPlacement(spec)
			first := asJSON(t, spec)
			if first != test.want {
				t.Errorf("spec\n%s\nwant\n%s", first, test.want)
			}
			if DefaultPlacement(spec); asJSON(t, spec) != first {
				t.Errorf("the second time\n%s", asJSON(t, spec))
			}
		})
	}
}

func TestDefaultCluster(t *testing.T) {
	for spec, want := range map[string]string{
		"{}":                           `{"heartbeatPeriodSeconds":60}`,
		"{heartbeatPeriodSeconds: 30}": `{"heartbeatPeriodSeconds":30}`,
		"{deleteOptions: {}}":          `{"heartbeatPeriodSeconds":60,"deleteOptions":{"validationMode":"Strict"}}`,
		"{deleteOptions: {validationMode: Skip}}": `{"heartbeatPeriodSeconds":60,"deleteOptions":{"validationMode":"Skip"}}`,
	} {
		c := &api.MemberCluster{Spec: *decode[api.MemberClusterSpec](t, spec)}
		if DefaultCluster(c); asJSON(t, c.Spec) != want {
			t.Errorf("%s: %s, want %s", spec, asJSON(t, c.Spec), want)
		}
	}
}

func TestDefaultOverride(t *testing.T) {
	for spec, want := range map[string]string{
		"{}":                     `{"resourceSelectors":null,"policy":null}`,
		"{placement: {name: a}}": `{"placement":{"name":"a","scope":"Cluster"},"resourceSelectors":null,"policy":null}`,
		"{placement: {name: a, scope: Namespaced}}":               `{"placement":{"name":"a","scope":"Namespaced"},"resourceSelectors":null,"policy":null}`,
		"{policy: {overrideRules: [{}, {overrideType: Delete}]}}": `{"resourceSelectors":null,"policy":{"overrideRules":[{"overrideType":"JSONPatch"},{"overrideType":"Delete"}]}}`,
	} {
		o := decode[api.ResourceOverrideSpec](t, spec)
		if DefaultOverride(o.Placement, o.Policy); asJSON(t, o) != want {
			t.Errorf("%s: %s, want %s", spec, asJSON(t, o), want)
		}
	}
}
