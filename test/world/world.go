// Package world creates repositories from a short notation, for tests whose input has to be readable.
package world

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// Files returns the files of a commit from a short text with one object per line, each in a file of
// its own. A line that begins with # is a comment:
//
//	clusters east west/region=eu north/region=eu!        tainted
//	namespace web [team=a]
//	configmap web/one [value]
//	envelope web/box holds docks/one        a ConfigMap in another
//	overlay web/shop eu one [broken]        an Overlay, and a ConfigMap shop in it
//	                                        with a value for clusters of a region
//	chart web/shop eu one [broken]          the same from a HelmChart
//	widget web/one                          of a kind without a definition
//	override web/one to value on eu         for clusters of a region; [gone] in
//	      [for web]                         place of a value, and of a placement
//	place web [of web,docks] [on east,west] [pick 2] [near eu]
//	      [unavailable 1] [surge 50%] [period 30]
//	      [report] [abandon] [never] [goes-on] [broken]
//	      [external] [shown]                in the namespace
//	      [staged slow] [queue]             update runs for each content
//	strategy slow canary/region=eu/after all/region=us/wait=5m/2
//	                                        stages with a label, and with an approval
//	                                        [before] or after, a wait, [gate=bake], a maxConcurrency
//	                                        and how failures and clusters in no stage are
//	                                        dealt with: on-failure=roll-back unmatched=last
//	soak bake 10m                           a RolloutGate: available for that time
//	metric errors 10m 1                     a RolloutGate that asks Prometheus: good for that
//	      [15s]                             time, with that many tolerated failures, and its interval
//	look ready 1m 0 15s object.status.ready the same that looks at ConfigMaps, with a condition
//	run web-1 of web by slow [Stop [0]]     a staged update run, with the number of its content
//	approve web-1 before|after canary
//	evict one of web from a                 an eviction, once
//	budget web min|max 1                    a disruption budget
//	window fridays "5 12 * * 5" 10m [Stop]  a RolloutWindow with an allowed period in UTC,
//	      [on eu] [max 1h]                  for clusters of a region, with overrun and maxAge
//
// A placement selects the given namespaces, or else the one with its own name.
func Files(t testing.TB, text string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		switch words[0] {
		case "clusters":
			for _, c := range words[1:] {
				name, label, _ := strings.Cut(c, "/")
				put(out, "cluster", name, member(name, label))
			}
		case "namespace":
			put(out, "namespace", words[1], fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", words[1]))
		case "configmap":
			put(out, "configmap", words[1], configMap(words[1], strings.Join(words[2:], " ")))
		case "envelope":
			namespace, name, _ := strings.Cut(words[1], "/")
			put(out, "envelope", words[1], fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, annotations: {kubernetes-fleet.io/envelope-configmap: \"true\"}}, data: {one: '%s'}}",
				name, namespace, configMap(words[3], "wrapped")))
		case "overlay":
			overlay(out, words[1], words[2], words[3], len(words) > 4)
		case "chart":
			chart(out, words[1], words[2], words[3], len(words) > 4)
		case "evict":
			put(out, "eviction", words[1], fmt.Sprintf("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacementEviction, metadata: {name: %s}, spec: {placementName: %s, clusterName: %s}}", words[1], words[3], words[5]))
		case "budget":
			field := map[string]string{"min": "minAvailable", "max": "maxUnavailable"}[words[2]]
			put(out, "budget", words[1], fmt.Sprintf("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacementDisruptionBudget, metadata: {name: %s}, spec: {%s: %s}}", words[1], field, words[3]))
		case "window":
			put(out, "window", words[1], rolloutWindow(line))
		case "soak":
			put(out, "gate", words[1], fmt.Sprintf("{apiVersion: gitfleet.dev/v1alpha1, kind: RolloutGate, metadata: {name: %s}, spec: {soak: {duration: %s}}}", words[1], words[2]))
		case "metric":
			put(out, "gate", words[1], askedGate(words, "address: 'https://prometheus', query: errors, condition: '< 1'"))
		case "look":
			put(out, "gate", words[1], askedGate(words, fmt.Sprintf("apiVersion: v1, kind: ConfigMap, condition: %q", strings.Join(words[5:], " "))))
		case "widget":
			namespace, name, _ := strings.Cut(words[1], "/")
			put(out, "widget", words[1], fmt.Sprintf("{apiVersion: example.com/v1, kind: Widget, metadata: {name: %s, namespace: %s}}", name, namespace))
		case "override":
			put(out, "override", words[1], override(t, words[1:]))
		case "strategy":
			put(out, "strategy", words[1], strategy(words[1], words[2:]))
		case "run":
			put(out, "run", words[1], fmt.Sprintf("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: %s}, spec: {placementName: %s, stagedRolloutStrategyName: %s, state: %s, resourceSnapshotIndex: '%s'}}",
				words[1], words[3], words[5], append(words, "Run")[6], strings.Join(words[min(len(words), 7):], "")))
		case "approve":
			put(out, "approval", strings.Join(words[1:], "-"), fmt.Sprintf("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterApprovalRequest, metadata: {name: %[1]s-%[2]s-%[3]s}, spec: {parentStageRollout: %[1]s, targetStage: %[3]s}}", words[1], words[2], words[3]))
		case "place":
			put(out, "placement", words[1], placementOf(t, words[1:]))
		default:
			t.Fatalf("%q is no object", line)
		}
	}
	return out
}

func put(out fstest.MapFS, kind, name, text string) {
	out[kind+"-"+strings.ReplaceAll(name, "/", "-")+".yaml"] = &fstest.MapFile{Data: []byte(text + "\n")}
}

func member(name, label string) string {
	label, tainted := strings.CutSuffix(label, "!")
	key, value, _ := strings.Cut(label, "=")
	if key == "" {
		key, value = "name", name
	}
	taints := ""
	if tainted {
		taints = ", taints: [{key: keep, value: away, effect: NoSchedule}]"
	}
	return fmt.Sprintf("{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: %s, labels: {%s: %q}}, spec: {identity: {kind: User, name: fleet}%s}}", name, key, value, taints)
}

func configMap(id, value string) string {
	namespace, name, _ := strings.Cut(id, "/")
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {value: %q}}", name, namespace, value)
}

// askedGate returns a RolloutGate that asks Prometheus, or looks at objects.
func askedGate(words []string, fields string) string {
	kind := map[string]string{"metric": "prometheus", "look": "objects"}[words[0]]
	if words[2] != "0s" { // the only one that is not written, but left out
		fields += ", duration: " + words[2]
	}
	if len(words) > 4 {
		fields += ", interval: " + words[4]
	}
	return fmt.Sprintf("{apiVersion: gitfleet.dev/v1alpha1, kind: RolloutGate, metadata: {name: %s}, spec: {%s: {%s, toleratedFailures: %s}}}", words[1], kind, fields, words[3])
}

// strategy returns a ClusterStagedUpdateStrategy.
func strategy(name string, stages []string) string {
	var all []string
	var annotations []string
	for _, stage := range stages {
		if how, found := strings.CutPrefix(stage, "on-failure="); found {
			annotations = append(annotations, "gitfleet.dev/on-failure: "+how)
			continue
		}
		if how, found := strings.CutPrefix(stage, "unmatched="); found {
			annotations = append(annotations, "gitfleet.dev/unmatched-clusters: "+how)
			continue
		}
		parts := strings.Split(stage, "/")
		key, value, _ := strings.Cut(parts[1], "=")
		text := fmt.Sprintf("{name: %s, labelSelector: {matchLabels: {%s: %q}}", parts[0], key, value)
		var after []string
		for _, part := range parts[2:] {
			wait, waits := strings.CutPrefix(part, "wait=")
			switch {
			case waits:
				after = append(after, "{type: TimedWait, waitTime: "+wait+"}")
			case strings.HasPrefix(part, "gate="):
				after = append(after, "{type: Gate, gateName: "+strings.TrimPrefix(part, "gate=")+"}")
			case part == "after":
				after = append(after, "{type: Approval}")
			case part == "before":
				text += ", beforeStageTasks: [{type: Approval}]"
			default:
				text += ", maxConcurrency: " + part
			}
		}
		all = append(all, text+", afterStageTasks: ["+strings.Join(after, ", ")+"]}")
	}
	return fmt.Sprintf("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateStrategy, metadata: {name: %s, annotations: {%s}}, spec: {stages: [%s]}}", name, strings.Join(annotations, ", "), strings.Join(all, ", "))
}

// overlay adds an Overlay with one directory for each region. Broken means that a file is missing in that of a region.
func overlay(out fstest.MapFS, id, region, value string, broken bool) {
	namespace, name, _ := strings.Cut(id, "/")
	put(out, "overlay", id, fmt.Sprintf("{apiVersion: gitfleet.dev/v1alpha1, kind: Overlay, metadata: {name: %[1]s, namespace: %[2]s}, spec: {path: '%[1]s/${cluster.labels.region}'}}", name, namespace))
	resources := "[one.yaml]"
	if broken {
		resources = "[one.yaml, two.yaml]"
	}
	out[name+"/"+region+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: " + resources + "\n")}
	out[name+"/"+region+"/one.yaml"] = &fstest.MapFile{Data: []byte(configMap(id, value) + "\n")}
}

// chart adds a HelmChart with one file of values for each region. Broken means that the chart refuses those of a region.
func chart(out fstest.MapFS, id, region, value string, broken bool) {
	namespace, name, _ := strings.Cut(id, "/")
	put(out, "chart", id, fmt.Sprintf("{apiVersion: gitfleet.dev/v1alpha1, kind: HelmChart, metadata: {name: %[1]s, namespace: %[2]s}, spec: {chart: {path: %[1]s}, valuesFiles: ['%[1]s-${cluster.labels.region}.yaml']}}", name, namespace))
	out[name+"/Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n")}
	out[name+"/templates/one.yaml"] = &fstest.MapFile{Data: []byte("{{ if .Values.broken }}{{ fail \"broken\" }}{{ end }}\n" + configMap(id, "{{ .Values.value }}") + "\n")}
	out[name+"-"+region+".yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "{value: %q, broken: %t}\n", value, broken)}
}

func override(t testing.TB, words []string) string {
	t.Helper()
	namespace, name, _ := strings.Cut(words[0], "/")
	var rule, region, bound string
	for i := 1; i < len(words); i++ {
		word := words[i]
		next := func() string {
			if i++; i == len(words) {
				t.Fatalf("%q of an override wants an argument", word)
			}
			return words[i]
		}
		switch word {
		case "to":
			rule = fmt.Sprintf("jsonPatchOverrides: [{op: replace, path: /data/value, value: %s}]", next())
		case "gone":
			rule = "overrideType: Delete"
		case "on":
			region = next()
		case "for":
			bound = fmt.Sprintf("placement: {name: %s}, ", next())
		default:
			t.Fatalf("an override has no %q", word)
		}
	}
	return fmt.Sprintf("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceOverride, metadata: {name: %[1]s, namespace: %[2]s}, spec: {%[3]s"+
		"resourceSelectors: [{group: \"\", version: v1, kind: ConfigMap, name: %[1]s}], policy: {overrideRules: [{"+
		"clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: %[4]s}}}]}, %[5]s}]}}}", name, namespace, bound, region, rule)
}

func placementOf(t testing.TB, words []string) string {
	t.Helper()
	name, of := words[0], words[0]
	var typ, policy, rolling, apply, other, notes, scope string
	for i := 1; i < len(words); i++ {
		word := words[i]
		next := func() string {
			if i++; i == len(words) {
				t.Fatalf("%q of a placement wants an argument", word)
			}
			return words[i]
		}
		switch word {
		case "of":
			of = next()
		case "on":
			typ, policy = "PickFixed", policy+fmt.Sprintf(", clusterNames: [%s]", next())
		case "pick":
			typ, policy = "PickN", policy+", numberOfClusters: "+next()
		case "near":
			policy += fmt.Sprintf(", affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: %s}}}]}}}", next())
		case "unavailable":
			rolling += "maxUnavailable: " + next() + ", "
		case "surge":
			rolling += "maxSurge: " + next() + ", "
		case "period":
			rolling += "unavailablePeriodSeconds: " + next() + ", "
		case "external":
			other += "type: External, "
		case "staged":
			notes = ", annotations: {gitfleet.dev/staged-update-strategy: " + next() + "}"
		case "queue":
			notes = strings.TrimSuffix(notes, "}") + ", gitfleet.dev/new-content: queue}"
		case "shown":
			scope = "statusReportingScope: NamespaceAccessible, "
		case "report":
			apply = "applyStrategy: {type: ReportDiff}, "
		case "never":
			apply = "applyStrategy: {whenToTakeOver: Never}, "
		case "abandon":
			other += "deleteStrategy: {propagationPolicy: Abandon}, "
		case "goes-on":
			notes = ", annotations: {gitfleet.dev/on-failure: continue}"
		case "timeout":
			notes = ", annotations: {gitfleet.dev/available-timeout: " + next() + "}"
		case "broken":
			of = name + ",-"
		default:
			t.Fatalf("a placement has no %q", word)
		}
	}
	if typ == "" {
		typ = "PickAll"
	}
	if rolling != "" {
		rolling = "rollingUpdate: {" + strings.TrimSuffix(rolling, ", ") + "}, "
	}
	return fmt.Sprintf("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: %s%s}, spec: {%sresourceSelectors: [%s], policy: {placementType: %s%s}, strategy: {%s}}}",
		name, notes, scope, strings.Join(terms(of), ", "), typ, policy, strings.TrimSuffix(rolling+apply+other, ", "))
}

// terms select namespaces, and for "-" what is valid for the hub and not in
// this fleet.
func terms(of string) []string {
	var out []string
	for _, namespace := range strings.Split(of, ",") {
		if namespace == "-" {
			out = append(out, "{group: example.com, version: v1, kind: Widget, name: one}")
		} else {
			out = append(out, fmt.Sprintf("{group: \"\", version: v1, kind: Namespace, name: %s}", namespace))
		}
	}
	return out
}

// rolloutWindow returns the manifest of window NAME "SCHEDULE" DURATION [Stop] [on REGION] [max AGE].
func rolloutWindow(line string) string {
	head, rest, _ := strings.Cut(line, `"`)
	schedule, rest, _ := strings.Cut(rest, `"`)
	options := strings.Fields(rest)
	more := ""
	for i, word := range options {
		switch word {
		case "Stop":
			more += ", overrun: Stop"
		case "on":
			more += ", clusterSelector: {matchLabels: {region: " + options[i+1] + "}}"
		case "max":
			more += ", maxAge: " + options[i+1]
		}
	}
	return fmt.Sprintf("{apiVersion: gitfleet.dev/v1alpha1, kind: RolloutWindow, metadata: {name: %s}, spec: {allow: [{schedule: %q, duration: %s}]%s}}",
		strings.Fields(head)[1], schedule, options[0], more)
}
