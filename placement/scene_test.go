package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/golden"
)

// TestScenes runs the scenes in testdata. "fleet", "policy" and "others" set these inputs,
// "plan" schedules and uses the resulting bindings from then on, and "explain NAME" explains
// one cluster without scheduling.
func TestScenes(t *testing.T) {
	golden.Archives(t, "testdata/*.txtar", play)
}

func play(t *testing.T, archive *txtar.Archive) {
	r := placement.Request{Key: crp}
	golden.Steps(t, archive, func(words []string, text string) (string, bool) {
		switch words[0] {
		case "fleet":
			r.Clusters = readFleet(t, text)
		case "policy":
			r.Policy = &api.PlacementPolicy{}
			if err := yaml.UnmarshalStrict([]byte(text), r.Policy); err != nil {
				t.Fatal(err)
			}
		case "others":
			r.Others = map[string][]string{}
			for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
				words := strings.Fields(line)
				r.Others[words[0]] = words[1:]
			}
		case "plan":
			o := placement.Schedule(r)
			r.Bindings = o.Bindings
			return printPlan(o), true
		case "explain":
			return printExplanation(placement.Explain(r), words[1]), true
		default:
			t.Fatalf("%s is no part of a scene", words)
		}
		return "", false
	})
}

// readFleet parses one cluster per line: "name label=value property:value taint!key=value ill".
func readFleet(t *testing.T, text string) fleet {
	t.Helper()
	var f fleet
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		words := strings.Fields(line)
		c := placement.Cluster{Name: words[0], Labels: map[string]string{}, Properties: map[string]resource.Quantity{}}
		for _, word := range words[1:] {
			if word == "ill" {
				c.Ineligible = "cluster is not connected to the fleet: member agent not online yet"
			} else if key, value, ok := strings.Cut(strings.TrimPrefix(word, "taint!"), "="); ok && strings.HasPrefix(word, "taint!") {
				c.Taints = append(c.Taints, api.Taint{Key: key, Value: value, Effect: api.NoSchedule})
			} else if ok {
				c.Labels[key] = value
			} else if key, value, _ := strings.Cut(word, ":"); value != "" {
				readProperty(&c, key, value)
			}
		}
		f = append(f, c)
	}
	return f
}

func readProperty(c *placement.Cluster, name, value string) {
	q, err := resource.ParseQuantity(value)
	if err != nil {
		c.Malformed = map[string]string{name: value}
		return
	}
	c.Properties[name] = q
}

func printPlan(o placement.Outcome) string {
	var b strings.Builder
	for _, d := range o.Decisions {
		mark := "-"
		if d.Selected {
			mark = "+"
		}
		fmt.Fprintf(&b, "%s %s: %s\n", mark, d.Cluster, d.Reason)
	}
	for _, c := range o.Bindings {
		if c.Unscheduled {
			fmt.Fprintf(&b, "leaves %s\n", c.Cluster)
		}
	}
	fmt.Fprintf(&b, "%s: %s\n", placement.ScheduledReason(o.Fulfilled), placement.ScheduledMessage(o.Fulfilled, o.Found))
	for _, a := range o.Absent {
		fmt.Fprintf(&b, "absent %s: %s\n", a.Cluster, a.Reason)
	}
	for _, n := range o.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return b.String()
}

func printExplanation(all []placement.Explanation, name string) string {
	var b strings.Builder
	say := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", label, text)
		}
	}
	for _, e := range all {
		if e.Cluster != name {
			continue
		}
		fmt.Fprintf(&b, "selected: %t\n", e.Selected)
		say("how", e.How)
		for _, v := range e.Filters {
			say(v.Filter, map[bool]string{true: "passed", false: v.Reason}[v.Passed])
		}
		for _, term := range e.Required {
			for _, p := range term.Parts {
				say("  required", fmt.Sprintf("%s: %t, found %s", p.Demand, p.Holds, p.Found))
			}
		}
		for _, p := range e.Preferred {
			say("preferred", fmt.Sprintf("%s = %d: %s", p.Preference, p.Points, p.Reason))
		}
		for _, s := range e.Spread {
			say("spread", fmt.Sprintf("%s: %q has %d, all have %d to %d, delta %d, violated %t = %d",
				s.Constraint, s.Domain, s.Count, s.Low, s.High, s.Delta, s.Violated, s.Score))
		}
		say("tie", e.Tie)
		for _, c := range e.Change {
			say("change", c)
		}
	}
	return b.String()
}
