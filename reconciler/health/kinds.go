package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func service(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	switch typ := get[string](&f, "spec", "type"); typ {
	case "", "ClusterIP", "NodePort":
		// "None" is the clusterIP of a headless service
		ips := get[[]any](&f, "spec", "clusterIPs")
		return f.first(messageIf(len(ips) == 0 || ips[0] == "", "no cluster IP assigned"))
	case "LoadBalancer":
		ingress := get[[]any](&f, "status", "loadBalancer", "ingress")
		return f.first(messageIf(len(ingress) == 0 || !hasAddress(ingress[0]), "no load balancer address assigned"))
	default: // a service of type ExternalName needs nothing
		return Health{State: NotTrackable}
	}
}

func hasAddress(ingress any) bool {
	m, _ := ingress.(map[string]any)
	ip, _ := m["ip"].(string)
	host, _ := m["hostname"].(string)
	return ip != "" || host != ""
}

func definition(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	established, accepted := f.condition("Established"), f.condition("NamesAccepted")
	h := f.first(
		messageIf(accepted.Status != "True", "names not accepted%s", accepted.why()),
		messageIf(established.Status != "True", "not established%s", established.why()),
	)
	if h.State == NotAvailableYet && accepted.Status == "False" {
		h.Failure = h.Message
	}
	return h
}

func disruptionBudget(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	allowed, c := f.status("disruptionsAllowed"), f.condition("DisruptionAllowed")
	want := condition{Status: "False", Reason: "InsufficientPods"}
	if allowed > 0 {
		want = condition{Status: "True", Reason: "SufficientPods"}
	}
	return f.first(
		f.observed(),
		messageIf(c.Status == "", "no condition DisruptionAllowed yet"),
		messageIf(c.Generation != live.GetGeneration(), "condition DisruptionAllowed is of generation %d, not %d", c.Generation, live.GetGeneration()),
		messageIf(c.Status != want.Status || c.Reason != want.Reason,
			"condition DisruptionAllowed is %s/%s with %d disruptions allowed", c.Status, c.Reason, allowed),
	)
}
