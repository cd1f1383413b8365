package schema

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

func init() {
	of(checkService)
	of(checkIngress)
	of(checkIngressRule)
	of(checkIngressBackend)
	of(checkIPBlock)
	of(func(c *comparison, port *networkingv1.NetworkPolicyPort, p *document.FieldPath) {
		switch {
		case port.EndPort == nil:
		case port.Port == nil || port.Port.Type != intstr.Int:
			c.report(p.Child("endPort"), "needs a port that is a number; add it")
		default:
			between(c, *port.EndPort, port.Port.IntVal, maxPort, p.Child("endPort"))
		}
	})
}

func checkService(c *comparison, spec *corev1.ServiceSpec, p *document.FieldPath) {
	headless := spec.ClusterIP == corev1.ClusterIPNone
	external := spec.Type == corev1.ServiceTypeExternalName
	if len(spec.Ports) == 0 && !headless && !external {
		c.missing(p.Child("ports"), "add a port")
	}
	c.labels(anyMap(spec.Selector), p.Child("selector"))
	if external {
		require(c, spec.ExternalName, p.Child("externalName"))
	}
	if spec.ClusterIP != "" && !headless && !external {
		if len(validation.IsValidIPForLegacyField(nil, spec.ClusterIP, false, nil)) > 0 {
			c.report(p.Child("clusterIP"), "is not an IP address; write one, or None")
		}
	}
	names := map[string]bool{}
	for i, port := range spec.Ports {
		at := p.Child("ports").At(i)
		if port.Port != 0 { // a missing one is reported elsewhere
			between(c, port.Port, 1, maxPort, at.Child("port"))
		}
		switch {
		case port.Name != "":
			c.invalid(at.Child("name"), "name of a port", port.Name, validation.IsDNS1123Label(port.Name))
			c.repeated(names, port.Name, at.Child("name"))
		case len(spec.Ports) > 1:
			c.report(at.Child("name"), "required if a Service has several ports, and missing; add it")
		}
		if name := port.TargetPort.StrVal; name != "" {
			c.invalid(at.Child("targetPort"), "name of a port", name, validation.IsValidPortName(name))
		} else if port.TargetPort.IntVal != 0 {
			between(c, port.TargetPort.IntVal, 1, maxPort, at.Child("targetPort"))
		}
		if port.NodePort != 0 && (spec.Type == "" || spec.Type == corev1.ServiceTypeClusterIP) {
			c.report(at.Child("nodePort"), "needs the type NodePort or LoadBalancer; remove it, or set the type")
		}
	}
	for i, cidr := range spec.LoadBalancerSourceRanges {
		checkCIDR(c, strings.TrimSpace(cidr), p.Child("loadBalancerSourceRanges").At(i))
	}
}

func checkCIDR(c *comparison, cidr string, p *document.FieldPath) {
	if len(validation.IsValidCIDRForLegacyField(nil, cidr, false, nil)) > 0 {
		c.report(p, fmt.Sprintf("%q is not a range of addresses; write one such as 10.0.0.0/8", cidr))
	}
}

func checkIPBlock(c *comparison, block *networkingv1.IPBlock, p *document.FieldPath) {
	checkCIDR(c, block.CIDR, p.Child("cidr"))
	for i, cidr := range block.Except {
		checkCIDR(c, cidr, p.Child("except").At(i))
	}
}

func checkIngress(c *comparison, spec *networkingv1.IngressSpec, p *document.FieldPath) {
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		c.report(p, "has neither rules nor defaultBackend; add one of them")
	}
}

func checkIngressRule(c *comparison, rule *networkingv1.IngressRule, p *document.FieldPath) {
	switch at := p.Child("host"); {
	case rule.Host == "":
	case strings.Contains(rule.Host, "*"):
		c.invalid(at, "host", rule.Host, validation.IsWildcardDNS1123Subdomain(rule.Host))
	default:
		c.invalid(at, "host", rule.Host, validation.IsDNS1123Subdomain(rule.Host))
	}
	if rule.HTTP == nil {
		return
	}
	for i, path := range rule.HTTP.Paths {
		at := p.Child("http", "paths").At(i)
		switch {
		case path.PathType == nil:
			c.missing(at.Child("pathType"), "add it")
		case path.Path == "" && *path.PathType == networkingv1.PathTypeImplementationSpecific:
		case !strings.HasPrefix(path.Path, "/"):
			c.report(at.Child("path"), "must begin with a slash")
		}
	}
}

func checkIngressBackend(c *comparison, backend *networkingv1.IngressBackend, p *document.FieldPath) {
	switch {
	case backend.Service == nil && backend.Resource == nil:
		c.report(p, "has neither a service nor a resource; add one of them")
	case backend.Service == nil:
	case backend.Resource != nil:
		c.report(p, "has a service and a resource, but only one of them is allowed; keep one")
	case backend.Service.Port.Name == "" && backend.Service.Port.Number == 0:
		c.report(p.Child("service", "port"), "has neither a name nor a number; add one of them")
	case backend.Service.Port.Name != "" && backend.Service.Port.Number != 0:
		c.report(p.Child("service", "port"), "has a name and a number, but only one of them is allowed; keep one")
	}
}
