package view

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func clusterTable(r *status.Report, wide, qualified bool) output.Table {
	t := output.Table{Header: []string{"NAME", "JOINED", "HEALTHY", "LAST-SEEN", "NODES", "AVAILABLE-CPU", "AVAILABLE-MEMORY", "VERSION"}}
	if wide {
		t.Header = append(t.Header, "LABELS", "MESSAGE")
	}
	for _, c := range r.Clusters {
		healthy, seen, message := "-", "-", ""
		for _, a := range c.Status.AgentStatus {
			healthy, seen = overview.ConditionStatus(a.Conditions, api.Healthy), output.Since(r.At, a.LastReceivedHeartbeat.Time)
			message = messageOf(a.Conditions)
		}
		if message == "" {
			message = messageOf(c.Status.Conditions)
		}
		name := c.Name
		if qualified {
			name = "mc/" + name
		}
		row := []string{
			name, overview.ConditionStatus(c.Status.Conditions, api.Joined), healthy, seen, property(c, "kubernetes-fleet.io/node-count"),
			quantity(c.Status.ResourceUsage.Available, "cpu"), quantity(c.Status.ResourceUsage.Available, "memory"), property(c, "k8s.io/k8s-version"),
		}
		if wide {
			row = append(row, labelsText(c.Labels), message)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func messageOf(cs []metav1.Condition) string {
	for _, c := range cs {
		if c.Status != metav1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

func property(c *api.MemberCluster, name string) string {
	if v, ok := c.Status.Properties[name]; ok {
		return v.Value
	}
	return "-"
}

func quantity(list api.ResourceList, name string) string {
	if q, ok := list[name]; ok {
		return q.String()
	}
	return "-"
}

func labelsText(m map[string]string) string {
	var out []string
	for k, v := range m {
		if k != api.MemberNameLabel {
			out = append(out, k+"="+v)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
